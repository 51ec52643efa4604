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

  def self.find(name)
    call('GetRSGroupInfo', { r_s_group_name: name })[:r_s_group_info]
  end

  def self.get(name)
    find(name) || raise(ArgumentError, "Group does not exist: #{name}")
  end

  def self.address(text)
    host, port = Names.host_and_port(text)
    { host_name: host, port: port.to_i }
  end

  def self.address_text(s)
    "#{s[:host_name]}:#{s[:port]}"
  end

  def self.tables_of(namespaces)
    Shell.need('namespace')
    namespaces.map do |ns|
      raise ArgumentError, "Can't find a namespace: #{ns}" unless Namespaces.exists?(ns)
      Master.call('ListTableNamesByNamespace', { namespaceName: ns })[:tableName]
    end.flatten
  end
end

class Command
  def list_rsgroups(regex = '.*')
    out.header(['NAME', 'SERVER / TABLE'])
    pattern = regex.is_a?(Regexp) ? regex : Regexp.new(regex)
    groups = Groups.call('ListRSGroupInfos')[:r_s_group_info].select { |g| pattern.match?(g[:name]) }
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
    Groups.call('AddRSGroup', { r_s_group_name: group_name })
    nil
  end

  def remove_rsgroup(group_name)
    Groups.call('RemoveRSGroup', { r_s_group_name: group_name })
    nil
  end

  def balance_rsgroup(group_name, *args)
    Shell.need('tools')
    r = Groups.call('BalanceRSGroup', balance_options(args).merge(r_s_group_name: group_name))
    balanced(r[:balanceRan], r[:moves_calculated], r[:moves_executed])
  end

  def move_servers_rsgroup(dest, servers)
    Groups.call('MoveServers', { target_group: dest, servers: servers.map { |s| Groups.address(s) } })
    nil
  end

  def move_tables_rsgroup(dest, tables)
    Groups.call('MoveTables', { target_group: dest, table_name: tables.map { |t| Names.table(t) } })
    nil
  end

  def move_namespaces_rsgroup(dest, namespaces)
    Groups.call('MoveTables', { target_group: dest, table_name: Groups.tables_of(namespaces) })
    namespaces.each { |ns| alter_namespace(ns, { 'METHOD' => 'set', 'hbase.rsgroup.name' => dest }) }
  end

  def move_servers_tables_rsgroup(dest, servers, tables)
    Groups.call('MoveServersAndTables', { target_group: dest, servers: servers.map { |s| Groups.address(s) }, table_name: tables.map { |t| Names.table(t) } })
    nil
  end

  def move_servers_namespaces_rsgroup(dest, servers, namespaces)
    Groups.call('MoveServersAndTables', { target_group: dest, servers: servers.map { |s| Groups.address(s) }, table_name: Groups.tables_of(namespaces) })
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
    Groups.call('RemoveServers', { servers: [servers].flatten.compact.map { |s| Groups.address(s) } })
    nil
  end

  def rename_rsgroup(oldname, newname)
    Groups.call('RenameRSGroup', { old_rsgroup_name: oldname, new_rsgroup_name: newname })
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
      when 'set' then arg.each { |k, v| config[k.to_s] = v.to_s unless k == METHOD }
      else raise ArgumentError, "Unknown method #{arg[METHOD]}"
      end
    end
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
