# SPDX-License-Identifier: Apache-2.0
# Names, regions and servers; calls of the master and of region servers.

module Master
  # Calls that start a procedure: the answer has its id, and the shell waits for its end.
  PROCEDURES = %w[CreateTable DeleteTable TruncateTable EnableTable DisableTable ModifyTable AddColumn ModifyColumn DeleteColumn FlushTable CreateNamespace
                  DeleteNamespace ModifyNamespace SplitRegion MergeTableRegions TruncateRegion RestoreSnapshot
                  AddReplicationPeer RemoveReplicationPeer EnableReplicationPeer DisableReplicationPeer
                  UpdateReplicationPeerConfig ModifyTableStoreFileTracker ModifyColumnStoreFileTracker]
  # Methods whose messages have other names.
  MESSAGES = {
    'SplitRegion' => 'SplitTableRegion', 'getProcedureResult' => 'GetProcedureResult',
    'truncateTable' => 'TruncateTable', 'getProcedures' => 'GetProcedures', 'getLocks' => 'GetLocks',
    'IsMasterInMaintenanceMode' => 'IsInMaintenanceMode', 'getSecurityCapabilities' => 'SecurityCapabilities',
    'SwitchSnapshotCleanup' => 'SetSnapshotCleanup'
  }

  # Calls the master; waits for the procedure unless `wait` is false.
  def self.call(method, fields = {}, wait = true)
    name = MESSAGES[method.to_s] || method.to_s
    answer = ask('MasterService', method.to_s, name, fields)
    id = answer[:proc_id]
    follow(id) if wait && !id.nil? && PROCEDURES.include?(name == 'TruncateTable' ? name : method.to_s)
    answer
  end

  def self.ask(service, method, name, fields)
    Wire.decode("#{name}Response", ask_raw(service, method, Wire.encode("#{name}Request", fields)))
  end

  # Messages as bytes.
  def self.ask_raw(service, method, request)
    attempt = 0
    begin
      Wire.call(nil, 0, service, method, request)
    rescue HBaseError => e
      attempt += 1
      raise e if !e.retry || attempt > 6
      Wire.pause(0.1 * attempt * attempt)
      retry
    end
  end

  def self.follow(id)
    pause = 0.001
    begun = Shell.monotonic
    loop do
      r = call('getProcedureResult', { proc_id: id })
      fail_as(r[:exception]) if r[:exception]
      return r[:result] if r[:state] != :RUNNING
      Shell.progress { "#{Shell.running}: #{(Shell.monotonic - begun).to_i} s (procedure #{id})" }
      Wire.pause(pause)
      pause *= 2 if pause < 0.05
    end
  end

  # A failure inside a procedure comes as ForeignExceptionMessage.
  def self.fail_as(exception)
    e = exception[:generic_exception] || {}
    raise HBaseError.make(e[:class_name] || 'java.io.IOException', e[:message].to_s)
  end

  # HBase's ClusterMetrics: the named parts, or all. Each part that is not shown costs: a server may have 100,000 regions.
  def self.status(*parts)
    call('GetClusterStatus', { options: parts })[:cluster_status]
  end

  def self.status_bytes(*parts)
    ask_raw('MasterService', 'GetClusterStatus', Wire.encode('GetClusterStatusRequest', { options: parts }))
  end

  # The same with each region's load as bytes, of which 100,000 take a tenth of the memory of decoded ones.
  def self.status_packed(*parts)
    Wire.decode('GetClusterStatusResponse', status_bytes(*parts), false, 'region_loads')[:cluster_status]
  end

  # Yields the server and the load of each open region whose name begins with the prefix.
  def self.each_region_load(prefix)
    Wire.select(status_bytes(:LIVE_SERVERS), LIVE_SERVERS, SERVER_HOST, '').each do |live|
      sn = Wire.decode('ServerName', Wire.select(live, [1], [1], '')[0])
      Wire.select(live, REGION_LOADS, REGION_NAME, prefix).each { |bytes| yield sn, Wire.decode('RegionLoad', bytes) }
    end
  end

  # Numbers of fields: in GetClusterStatusResponse, LiveServerInfo, RegionLoad.
  LIVE_SERVERS = [1, 2]
  SERVER_HOST = [1, 1]
  REGION_LOADS = [2, 5]
  REGION_NAME = [1, 2]
end

# Other clusters than the session's.
module Clusters
  # Runs the block while all calls go to the cluster of the first of these ZooKeepers that answers.
  def self.visit(hosts, root)
    failure = nil
    hosts.each do |host|
      failure = begin
        Wire.visit(host, root)
        nil
      rescue HBaseError => e
        e
      end
      break if failure.nil?
    end
    raise failure unless failure.nil?
    begin
      yield
    ensure
      Wire.leave
    end
  end
end

module Names
  # The TableName of a text; HBase's client checks names. Every put calls this, so valid names are cached.
  def self.table(text)
    known = @known[text]
    return known if known
    null('Cannot invoke "String.equals(Object)" because "name" is null') if text.nil?
    name = Arguments.table_name(text)
    ns, q = name.include?(':') ? name.split(':', 2) : ['default', name]
    check(ns, q, name)
    @known.clear if @known.size > 1000
    @known[text] = { namespace: ns, qualifier: q }
  end
  @known = {}

  def self.check(ns, qualifier, text, what = 'User-space table qualifiers')
    illegal(what == 'Snapshot qualifiers' ? 'Snapshot' : 'Table qualifier must not be empty') if qualifier.nil? || qualifier.empty?
    first = qualifier[0]
    if first == '.' || first == '-'
      illegal("Illegal first character <#{first.getbyte(0)}> at 0. #{what} can only start with 'alphanumeric characters' from any language: #{qualifier}")
    end
    at = (0...qualifier.length).find { |i| !(qualifier[i] =~ /[A-Za-z0-9_\-.]/) && qualifier.getbyte(i) < 128 }
    unless at.nil?
      illegal("Illegal character code:#{qualifier.getbyte(at)}, <#{qualifier[at]}> at #{at}. #{what} may only contain 'alphanumeric characters' and digits: #{qualifier}")
    end
    at = (0...ns.length).find { |i| !(ns[i] =~ /[A-Za-z0-9_]/) && ns.getbyte(i) < 128 }
    return if at.nil?
    illegal("Illegal character <#{ns[at]}> at #{at}. Namespaces may only contain 'alphanumeric characters' from any language and digits: #{ns}")
  end

  # HBase: what Java, and JRuby, say to nil as a name.
  def self.null(text)
    raise HBaseError.make('java.lang.NullPointerException', text)
  end

  def self.not_null(name)
    null('') if name.nil?
    name
  end

  def self.bytes(name)
    Arguments.bytes(name)
  end

  def self.illegal(text)
    raise HBaseError.make('java.lang.IllegalArgumentException', text)
  end

  def self.text(t)
    t[:namespace] == 'default' ? t[:qualifier] : "#{t[:namespace]}:#{t[:qualifier]}"
  end

  def self.server(sn)
    "#{sn[:host_name]},#{sn[:port]},#{sn[:start_code]}"
  end

  # ["::1", "2181"] of "[::1]:2181"; HBase's "host,port" too; the port is nil if there is none.
  def self.host_and_port(text)
    found = text.match(/\A\[([^\]]*)\](?::(\d+))?\z/) || text.match(/\A([^:,]*)(?:[:,](\d+))?/)
    [found[1], found[2]]
  end

  # An entry of a list of servers, with `port` if it has none. As rq_host_with_port.
  def self.with_port(entry, port)
    return "[#{entry}]:#{port}" if entry.count(':') > 1 && entry[0] != '['
    host_and_port(entry)[1].nil? ? "#{entry}:#{port}" : entry
  end

  FULL_SERVER = /\A[^,]+,\d+,\d+\z/

  def self.full_server?(text)
    !(text.to_s =~ FULL_SERVER).nil?
  end

  def self.server_of(text)
    Arguments.server_name(text)
    unless full_server?(text)
      raise HBaseError.make('java.lang.StringIndexOutOfBoundsException', "begin 0, end -1, length #{text.to_s.length}") unless text.to_s.include?(',')
      illegal("Expected 3 parts in server name, got: #{text}")
    end
    host, port, start = text.split(',')
    { host_name: host, port: port.to_i, start_code: start.to_i }
  end

  # Region specifier of a name or an encoded name. HBASE: RegionInfo.isEncodedRegionName.
  def self.region(text)
    type = bytes(text).count(',') < 2 && text.bytesize <= 32 ? :ENCODED_REGION_NAME : :REGION_NAME
    { type: type, value: text }
  end
end

# A region as hbase:meta has it.
class Region
  attr_reader :info, :server, :start_code, :state, :row

  def initialize(row, info, server, start_code, state)
    @row = row
    @info = info
    @server = server
    @start_code = start_code
    @state = state
  end

  def self.parse_info(bytes)
    return nil if bytes.nil? || bytes[0, 4] != 'PBUF'
    i = Wire.decode('RegionInfo', bytes[4..-1])
    i[:start_key] ||= ''
    i[:end_key] ||= ''
    i
  end

  # HBase: RegionInfo.createRegionName; the name ends with the MD5 of the part before it.
  def self.name(i)
    table = Names.text(i[:table_name])
    return 'hbase:meta,,1' if table == 'hbase:meta'
    base = "#{table},#{i[:start_key]},#{i[:region_id]}"
    base += format('_%04X', i[:replica_id]) if i[:replica_id].to_i > 0
    "#{base}.#{Bytes.md5(base)}."
  end

  def self.encoded(i)
    Names.text(i[:table_name]) == 'hbase:meta' ? '1588230740' : name(i)[-33, 32]
  end

  def name
    Region.name(@info)
  end

  # HBase: RegionInfo.getRegionNameAsString. The name of hbase:meta's region lacks the encoded name, which is printed behind it.
  def name_text
    text = Bytes.toStringBinary(name)
    text == 'hbase:meta,,1' ? "#{text}.#{encoded}" : text
  end

  def encoded
    Region.encoded(@info)
  end

  def server_name
    "#{@server.sub(/:(\d+)\z/) { ",#{$1}" }},#{@start_code}"
  end

  def host
    @server[/\A(.*):\d+\z/, 1]
  end

  def port
    @server[/:(\d+)\z/, 1].to_i
  end

  # HBase: RegionInfo.toString
  def self.describe(i)
    text = "{ENCODED => #{encoded(i)}, NAME => '#{Bytes.toStringBinary(name(i))}', " \
           "STARTKEY => '#{Bytes.toStringBinary(i[:start_key])}', ENDKEY => '#{Bytes.toStringBinary(i[:end_key])}'"
    text += ', OFFLINE => true' if i[:offline]
    text += ', SPLIT => true' if i[:split]
    text += ", REPLICA_ID => #{i[:replica_id]}" if i[:replica_id].to_i > 0
    text + '}'
  end
end

module Meta
  def self.row_region(cells)
    h = {}
    cells.each { |c| h[c[2]] = c[5] if c[1] == 'info' }
    info = Region.parse_info(h['regioninfo'])
    return nil if info.nil?
    start = h['serverstartcode']
    Region.new(cells[0][0], info, h['server'], start.nil? || start.length != 8 ? nil : Bytes.signed(start), h['state'])
  end

  INFO = { column: [{ family: 'info' }] }

  # Yields the regions of a table by start key; parents of splits are left out.
  def self.each_region(table)
    return yield(meta_region) if table == 'hbase:meta'
    Rows.scan('hbase:meta', { start: "#{table},,", stop: "#{table} ,," }, Wire.encode('Scan', INFO)) do |cells|
      r = row_region(cells)
      yield r if serves?(r)
    end
  end

  def self.regions(table)
    list = []
    each_region(table) { |r| list << r }
    list
  end

  # The start keys but the first one, which is empty.
  def self.split_keys(table)
    list = []
    each_region(table) { |r| list << r.info[:start_key] unless r.info[:start_key].empty? }
    list
  end

  def self.serves?(region)
    !(region.nil? || region.info[:split] || region.info[:offline])
  end

  # The region that has the row; nil: the table has no regions. HBASE: RegionInfo.createRegionName with HConstants.NINES.
  def self.region_of_row(table, key)
    return meta_region if table == 'hbase:meta'
    options = { start: "#{table},#{key},99999999999999", stop: "#{table},,", reversed: true, includes_stop: true, caching: 3 }
    Rows.scan('hbase:meta', options, Wire.encode('Scan', INFO)) do |cells|
      r = row_region(cells)
      return r if serves?(r)
    end
    nil
  end

  def self.meta_region
    info = { region_id: 1, table_name: { namespace: 'hbase', qualifier: 'meta' }, start_key: '', end_key: '' }
    l = Wire.decode('GetMetaRegionLocationsResponse',
                    Wire.call(nil, 0, 'ClientMetaService', 'GetMetaRegionLocations', ''))[:meta_locations][0]
    sn = l[:server_name]
    Region.new('hbase:meta,,1', info, "#{sn[:host_name]}:#{sn[:port]}", sn[:start_code], 'OPEN')
  end

  # The region of a full or encoded name; nil: none.
  def self.find(name)
    return meta_region if name == '1588230740' || name == 'hbase:meta,,1'
    if name =~ /\A.*,.*,\d+(_[0-9A-F]{4})?\.[0-9a-f]{32}\.\z/
      cells = Rows.get('hbase:meta', name, Wire.encode('Get', { column: [{ family: 'info' }] }))
      return cells.empty? ? nil : row_region(cells)
    end
    found = nil
    Rows.scan('hbase:meta', {}, Wire.encode('Scan', { column: [{ family: 'info' }] })) do |cells|
      found = row_region(cells) if cells[0][0][-33, 32] == name
    end
    found
  end
end

# Calls of one region server.
module Servers
  # Masters before 2.2 do not know the option and send everything but the names.
  def self.live
    s = Master.status(:SERVERS_NAME)
    s[:servers_name].empty? ? s[:live_servers].map { |l| l[:server] } : s[:servers_name]
  end

  def self.call(sn, method, fields = {})
    Wire.decode("#{method}Response",
                Wire.call(sn[:host_name], sn[:port], 'AdminService', method, Wire.encode("#{method}Request", fields)))
  end

  def self.of_region(region)
    { host_name: region.host, port: region.port, start_code: region.start_code }
  end

  # Servers by full names, or by host and port; HBase: Admin.getServerNames.
  def self.named(list, all_if_empty)
    return all_if_empty ? live : [] if list.empty?
    known = nil
    list.inject([]) do |found, name|
      text = Arguments.string(name)
      next found << Names.server_of(text) if Names.full_server?(text)
      raise NoMethodError, "undefined method `split' for #{name.inspect}:#{name.class}" if name.is_a?(Symbol)
      host, port = text.split(',')
      known ||= live
      found + known.select { |sn| sn[:host_name] == host && (port.nil? || sn[:port].to_s == port) }
    end
  end
end
