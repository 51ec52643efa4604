# SPDX-License-Identifier: Apache-2.0
# Region server groups: RSGroupAdminService, a coprocessor of the master.

module Groups
  def self.call(method, fields = {})
    request = Wire.encode("#{method}Request", fields)
    call = { row: '', service_name: 'RSGroupAdminService', method_name: method, request: request }
    region = { type: :REGION_NAME, value: '' }
    bytes = Wire.encode('CoprocessorServiceRequest', { region: region, call: call })
    answer = Wire.decode('CoprocessorServiceResponse', Wire.call(nil, 0, 'MasterService', 'ExecMasterService', bytes))
    Wire.decode("#{method}Response", answer[:value][:value].to_s)
  end

  def self.named(v)
    Names.not_null(Arguments.string(v))
  end

  # With servers and tables in the order of HBase's sets, and the configuration in that of its map.
  def self.find(name)
    sorted(call('GetRSGroupInfo', { r_s_group_name: Groups.named(name) })[:r_s_group_info])
  end

  def self.get(name)
    group = find(name)
    return group unless group.nil?
    raise TypeError, 'no implicit conversion of Symbol into String' if name.is_a?(Symbol)
    raise ArgumentError, "Group does not exist: #{name}"
  end

  def self.sorted(g)
    return nil if g.nil?
    g[:servers] = g[:servers].sort { |a, b| [a[:host_name], a[:port]] <=> [b[:host_name], b[:port]] }
    g[:tables] = g[:tables].map { |t| [table_order(Names.text(t)), t] }.sort { |a, b| a[0] <=> b[0] }.map { |entry| entry[1] }
    values = g[:configuration].each_with_object({}) { |c, h| h[c[:name]] = c[:value] }
    g[:configuration] = JavaMap.order(values.keys).map { |k| { name: k, value: values[k] } }
    g
  end

  # HBASE: TableName.compareTo, which compares hashes first.
  def self.table_order(name)
    hash = JavaMap.hash_of(name)
    [hash < 0x80000000 ? hash : hash - 0x100000000, name]
  end

  # HOST:PORT. HBASE: Address, which is Guava's HostAndPort.
  def self.address(v)
    text = Names.not_null(Arguments.string(v))
    host, port = split_address(text)
    raise HBaseError.make('java.lang.IllegalStateException', '') if port.to_s.empty?
    Names.illegal("Unparseable port number: #{text}") unless port.match?(/\A-?0*\d{1,10}\z/) && (-0x80000000..0x7fffffff).include?(port.to_i)
    Names.illegal("Port number out of range: #{text}") unless (0..65535).include?(port.to_i)
    { host_name: host, port: port.to_i }
  end

  # More than one colon without brackets: an IPv6 address without a port.
  def self.split_address(text)
    found = text.match(/\A\[([^\]]*)\](?::(.*))?\z/)
    return text.count(':') == 1 ? text.split(':', 2) : [text, nil] if found.nil?
    Names.illegal("Port must be numeric: #{text}") unless found[2].to_s.match?(/\A\d*\z/)
    [found[1], found[2]]
  end

  def self.addresses(list)
    all = []
    Arguments.listed(list).each { |s| all << address(s) }
    all.uniq
  end

  def self.tables(list)
    all = []
    Arguments.listed(list).each { |t| all << Names.table(t) }
    all.uniq
  end

  # Tables that are to be moved must exist. HBase's client checks that, not its server.
  def self.existing(tables)
    tables.each { |t| raise "Unknown table #{Names.text(t)}!" unless Tables.exists?(Names.text(t)) }
  end

  def self.address_text(s)
    "#{s[:host_name]}:#{s[:port]}"
  end

  def self.tables_of(namespaces)
    Shell.need('namespace')
    all = []
    Arguments.listed(namespaces).each do |ns|
      raise ArgumentError, "Can't find a namespace: #{ns}" unless Namespaces.exists?(ns)
      all += Master.call('ListTableNamesByNamespace', { namespaceName: ns })[:tableName]
    end
    all
  end
end

class Command
  def list_rsgroups(regex = '.*')
    out.header(['NAME', 'SERVER / TABLE'])
    pattern = regex.is_a?(Regexp) ? regex : Regexp.new(regex.to_s)
    groups = Groups.call('ListRSGroupInfos')[:r_s_group_info].select { |g| pattern.match?(g[:name]) }.map { |g| Groups.sorted(g) }
    groups.each do |g|
      lines = g[:servers].map { |s| "server #{Groups.address_text(s)}" } + g[:tables].map { |t| "table #{Names.text(t)}" }
      lines = [''] if lines.empty?
      lines.each_with_index { |l, i| out.row([i == 0 ? g[:name] : '', l]) }
    end
    out.footer(groups.length)
  end

  def get_rsgroup(group_name)
    g = Groups.get(group_name)
    out.header(['SERVERS'])
    g[:servers].each { |s| out.row([Groups.address_text(s)]) }
    out.footer
    out.header(['TABLES'])
    g[:tables].each { |t| out.row([Names.text(t)]) }
    out.footer
  end

  def add_rsgroup(group_name)
    Groups.call('AddRSGroup', { r_s_group_name: Groups.named(group_name) })
    nil
  end

  def remove_rsgroup(group_name)
    Groups.call('RemoveRSGroup', { r_s_group_name: Groups.named(group_name) })
    nil
  end

  def balance_rsgroup(group_name, *args)
    Shell.need('tools')
    options = balance_options(args)
    unless [NilClass, String, Symbol].include?(group_name.class)
      raise TypeError, "no method 'balanceRSGroup' for arguments (#{Failures.jruby_class(group_name)},org.apache.hadoop.hbase.client.BalanceRequest) " \
                       'on Java::OrgApacheHadoopHbaseRsgroup::RSGroupAdminClient'
    end
    r = Groups.call('BalanceRSGroup', options.merge(r_s_group_name: Groups.named(group_name)))
    balanced(r[:balanceRan], r[:moves_calculated], r[:moves_executed])
  end

  def move_servers_rsgroup(dest, servers)
    list = Groups.addresses(servers)
    Groups.call('MoveServers', { target_group: Groups.named(dest), servers: list })
    nil
  end

  def move_tables_rsgroup(dest, tables)
    move_tables_to(dest, Groups.tables(tables))
  end

  def move_tables_to(dest, tables)
    fields = { target_group: Groups.named(dest), table_name: tables }
    Groups.existing(tables)
    Groups.call('MoveTables', fields)
    nil
  end

  def move_namespaces_rsgroup(dest, namespaces)
    move_tables_to(dest, Groups.tables_of(namespaces))
    namespaces.each { |ns| alter_namespace(ns, { 'METHOD' => 'set', 'hbase.rsgroup.name' => dest }) }
  end

  def move_servers_tables_rsgroup(dest, servers, tables)
    list = Groups.addresses(servers)
    move_both_to(dest, list, Groups.tables(tables))
  end

  def move_servers_namespaces_rsgroup(dest, servers, namespaces)
    list = Groups.addresses(servers)
    move_both_to(dest, list, Groups.tables_of(namespaces))
  end

  def move_both_to(dest, servers, tables)
    fields = { target_group: Groups.named(dest), servers: servers, table_name: tables }
    Groups.existing(tables)
    Groups.call('MoveServersAndTables', fields)
    nil
  end

  def get_server_rsgroup(server)
    g = Groups.call('GetRSGroupInfoOfServer', { server: Groups.address(server) })[:r_s_group_info]
    raise ArgumentError, "Server has no group: #{server}" if g.nil?
    out.row([g[:name]])
    out.footer(1)
  end

  def get_table_rsgroup(table)
    g = Groups.call('GetRSGroupInfoOfTable', { table_name: Names.table(table) })[:r_s_group_info]
    raise ArgumentError, "Table has no group: #{table}" if g.nil?
    out.row([g[:name]])
    out.footer(1)
  end

  def remove_servers_rsgroup(servers)
    Groups.call('RemoveServers', { servers: Groups.addresses([servers].flatten.compact) })
    nil
  end

  def rename_rsgroup(oldname, newname)
    Groups.call('RenameRSGroup', { old_rsgroup_name: Groups.named(oldname), new_rsgroup_name: Groups.named(newname) })
    nil
  end

  def alter_rsgroup_config(group, args)
    raise ArgumentError, 'RSGroup name must be of type String' unless group.is_a?(String)
    g = Groups.find(group) || raise(ArgumentError, 'RSGroup does not exist')
    config = g[:configuration].inject({}) { |h, c| h.merge(c[:name] => c[:value]) }
    [args].flatten.compact.each do |arg|
      raise ArgumentError, "#{arg.class} of #{arg.inspect} is not of Hash type" unless arg.is_a?(Hash)
      case arg[METHOD]
      when 'unset' then config.delete(arg[NAME])
      when 'set' then arg.each { |k, v| config[k.to_s] = v.nil? ? nil : v.to_s unless k == METHOD }
      else raise ArgumentError, "Unknown method #{arg[METHOD]}"
      end
    end
    config.each { |_, v| Names.not_null(v) }
    Groups.call('UpdateRSGroupConfig', { group_name: group, configuration: config.map { |k, v| { name: k, value: v } } })
    nil
  end

  def show_rsgroup_config(group)
    out.header(["'KEY'", "'VALUE'"])
    config = Groups.get(group)[:configuration]
    config.each { |c| out.row([c[:name], c[:value]]) }
    out.footer(config.length)
  end

  def get_namespace_rsgroup(namespace_name)
    raise ArgumentError, 'Namespace name must be of type String' unless namespace_name.is_a?(String)
    c = Namespaces.get(namespace_name)[:configuration].find { |e| e[:name] == 'hbase.rsgroup.name' }
    out.row([c[:value]]) unless c.nil?
    out.footer(1)
  end
end
Shell.need('namespace')
