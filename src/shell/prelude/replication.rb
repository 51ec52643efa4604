# SPDX-License-Identifier: Apache-2.0
# Replication peers.

module Peers
  def self.all
    Master.call('ListReplicationPeers')[:peer_desc]
  end

  def self.id_of(id)
    Names.not_null(Arguments.string(id))
  end

  def self.get(id)
    Master.call('GetReplicationPeerConfig', { peer_id: id_of(id) })[:peer_config]
  end

  def self.update(id, config)
    Master.call('UpdateReplicationPeerConfig', { peer_id: id_of(id), peer_config: config })
    nil
  end

  # Reads a peer's configuration, lets the block change it, and writes it.
  def self.change(id)
    config = get(id)
    yield config
    update(id, config)
  end

  # { "table" => ["family"] } or { "table" => [] }
  def self.table_cfs(map)
    map.map { |t, families| { table_name: Names.table(t), families: (families || []).map { |f| f.to_s } } }
  end

  def self.map_of(list)
    list.inject({}) { |h, e| h.merge(Names.text(e[:table_name]) => e[:families]) }
  end

  # HBase: ReplicationPeerConfigUtil.convertToString; nil for no table.
  def self.text(list)
    return nil if list.empty?
    list.map do |e|
      t = e[:table_name]
      name = "#{t[:namespace]}.#{t[:qualifier]}"
      e[:families].empty? ? name : "#{name}:#{e[:families].join(',')}"
    end.join(';')
  end

  def self.sorted(names)
    names.empty? ? nil : names.sort.join(';')
  end

  def self.replicates_all?(c)
    c[:replicate_all].nil? ? (c[:namespaces].empty? && c[:table_cfs].empty?) : c[:replicate_all]
  end

  def self.add_tables(old, more)
    map = map_of(old)
    more.each do |t, families|
      key = Names.text(Names.table(t))
      if map.key?(key)
        map[key] = map[key].empty? || families.nil? || families.empty? ? [] : (map[key] | families)
      else
        map[key] = families || []
      end
    end
    table_cfs(map)
  end

  def self.remove_tables(old, less, id, none = "Table-Cfs for peer: #{id} doesn't exist")
    map = map_of(old)
    replication_error(none) if map.empty?
    less.each do |t, families|
      key = Names.text(Names.table(t))
      replication_error("No table: #{key} in table-cfs config of peer: #{id}") unless map.key?(key)
      families ||= []
      if map[key].empty? != families.empty?
        replication_error(families.empty? ? "Cannot remove table: #{key} which has specified cfs from table-cfs config in peer: #{id}"
                                          : "Cannot remove cf of table: #{key} which doesn't specify cfs from table-cfs config in peer: #{id}")
      end
      map[key] -= families
      map.delete(key) if map[key].empty?
    end
    table_cfs(map)
  end

  # HBASE: ReplicationPeerConfig.needToReplicate
  def self.replicates?(config, name)
    t = Names.table(name)
    listed = config[:table_cfs].any? { |e| Names.text(e[:table_name]) == Names.text(t) } || config[:namespaces].include?(t[:namespace])
    return listed unless replicates_all?(config)
    return false if config[:exclude_namespaces].include?(t[:namespace])
    config[:exclude_table_cfs].none? { |e| Names.text(e[:table_name]) == Names.text(t) && e[:families].empty? }
  end

  # Runs the block while all calls go to a peer's cluster. A cluster key is HOST,HOST:PORT:/ROOT; a host may have a port.
  def self.at(peer)
    key = peer[:config][:clusterkey].to_s.match(/\A(.+):(\d+):([^:]+)\z/)
    Names.illegal("Invalid cluster key: #{peer[:config][:clusterkey]}") if key.nil?
    hosts = key[1].split(',').map { |host| Names.with_port(host, key[2]) }
    Clusters.visit(hosts, key[3]) { yield }
  end

  # Creates the table on a peer, or checks that the peer's is equal except for its scopes.
  def self.sync_table(peer, schema, splits)
    name = Names.text(schema[:table_name])
    at(peer) do
      unless Tables.exists?(name)
        Master.call('CreateTable', { table_schema: schema, split_keys: splits })
        next
      end
      next if unscoped(Descriptor.get(name)) == unscoped(schema)
      Names.illegal("Table #{name} exists in peer cluster #{peer[:id]}, but the table descriptors are not same when compared " \
                    "with source cluster. Thus can not enable the table's replication switch.")
    end
  end

  def self.unscoped(schema)
    families = schema[:column_families].inject({}) do |h, f|
      h.merge(f[:name] => Descriptor.values(f).reject { |k, _| k == 'REPLICATION_SCOPE' })
    end
    [Descriptor.values(schema), families]
  end

  def self.replication_error(text)
    raise HBaseError.make('org.apache.hadoop.hbase.replication.ReplicationException', text)
  end
end

# The result of list_peers for each peer, with the names of HBase's class.
class ReplicationPeer < JavaValue
  def initialize(peer)
    super('OrgApacheHadoopHbaseReplication::ReplicationPeerDescription')
    @peer = peer
  end

  def getPeerId
    @peer[:id]
  end

  def isEnabled
    @peer[:state][:state] == :ENABLED
  end

  # As get_peer_config has it.
  def getPeerConfig
    self
  end

  def getClusterKey
    @peer[:config][:clusterkey]
  end
  alias get_cluster_key getClusterKey

  def getReplicationEndpointImpl
    @peer[:config][:replicationEndpointImpl]
  end

  def replicateAllUserTables
    Peers.replicates_all?(@peer[:config])
  end

  def getBandwidth
    @peer[:config][:bandwidth].to_i
  end

  def isSerial
    @peer[:config][:serial] || false
  end
end

class Command
  def add_peer(id, args = {}, peer_tableCFs = nil)
    raise ArgumentError, 'args must be a Hash' unless args.is_a?(Hash)
    raise ArgumentError, 'peer_tableCFs should be specified as TABLE_CFS in args' unless peer_tableCFs.nil?
    endpoint = args[ENDPOINT_CLASSNAME]
    key = args[CLUSTER_KEY]
    raise ArgumentError, 'Either ENDPOINT_CLASSNAME or CLUSTER_KEY must be specified.' if endpoint.nil? && key.nil?
    key = "#{Wire.registry}:/hbase" if key.nil?
    config = { clusterkey: key, replicationEndpointImpl: endpoint, replicate_all: true, bandwidth: 0, serial: args[SERIAL] || false,
               configuration: (args[CONFIG] || {}).map { |k, v| { name: k.to_s, value: v.to_s } },
               data: (args[DATA] || {}).map { |k, v| { first: k.to_s, second: v.to_s } } }
    unless args[NAMESPACES].nil?
      config[:replicate_all] = false
      config[:namespaces] = args[NAMESPACES].uniq
    end
    unless args[TABLE_CFS].nil?
      config[:replicate_all] = false
      config[:table_cfs] = Peers.table_cfs(args[TABLE_CFS])
    end
    Master.call('AddReplicationPeer', { peer_id: Peers.id_of(id), peer_config: config, peer_state: { state: args[STATE] == 'DISABLED' ? :DISABLED : :ENABLED } })
    nil
  end

  def remove_peer(id)
    Master.call('RemoveReplicationPeer', { peer_id: Peers.id_of(id) })
    nil
  end

  def enable_peer(id)
    Master.call('EnableReplicationPeer', { peer_id: Peers.id_of(id) })
    nil
  end

  def disable_peer(id)
    Master.call('DisableReplicationPeer', { peer_id: Peers.id_of(id) })
    nil
  end

  def list_peers
    peers = Peers.all
    out.header(%w[PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL])
    peers.each do |p|
      c = p[:config]
      all = Peers.replicates_all?(c)
      names = Peers.sorted(all ? c[:exclude_namespaces] : c[:namespaces])
      tables = Peers.text(all ? c[:exclude_table_cfs] : c[:table_cfs])
      names = names.nil? ? nil : "!#{names}" if all
      tables = tables.nil? ? nil : "!#{tables}" if all
      out.row([p[:id], c[:clusterkey], c[:replicationEndpointImpl], p[:state][:state], all, names, tables, c[:bandwidth].to_i, c[:serial] || false])
    end
    out.footer
    JavaList.new('JavaUtil::ArrayList', peers.map { |p| ReplicationPeer.new(p) })
  end

  def show_config(c)
    out.row(['Cluster Key', c[:clusterkey]]) unless c[:clusterkey].nil?
    out.row(['Replication Endpoint', c[:replicationEndpointImpl]]) unless c[:replicationEndpointImpl].nil?
    c[:configuration].each { |e| out.row([e[:name], e[:value]]) }
  end

  def get_peer_config(id)
    c = Peers.get(id)
    begin_now
    show_config(c)
    JavaValue.new('OrgApacheHadoopHbaseReplication::ReplicationPeerConfig')
  end

  def list_peer_configs
    Peers.all.each do |p|
      out.row(['PeerId', p[:id]])
      show_config(p[:config])
      out.row([' '])
    end
    Peers.all.each_with_object(JavaMap.new) { |p, h| h[p[:id]] = JavaValue.new('OrgApacheHadoopHbaseReplication::ReplicationPeerConfig') }
  end

  def update_peer_config(id, args = {})
    raise NoMethodError, "undefined method `fetch' for #{args.nil? ? 'nil:NilClass' : "#{args.inspect}:#{args.class}"}" unless args.respond_to?(:fetch)
    Peers.change(id) do |c|
      (args[CONFIG] || {}).each do |k, v|
        c[:configuration].reject! { |e| e[:name] == k.to_s }
        c[:configuration] << { name: k.to_s, value: v.to_s }
      end
      (args[DATA] || {}).each do |k, v|
        c[:data].reject! { |e| e[:first] == k.to_s }
        c[:data] << { first: k.to_s, second: v.to_s }
      end
    end
  end

  def show_peer_tableCFs(id)
    text = Peers.text(Peers.get(id)[:table_cfs])
    puts text
    text
  end

  def set_peer_tableCFs(id, peer_table_cfs = nil)
    return if peer_table_cfs.nil?
    Arguments.listed(peer_table_cfs)
    Peers.change(id) { |c| c[:table_cfs] = Peers.table_cfs(peer_table_cfs) }
  end

  def append_peer_tableCFs(id, table_cfs)
    Peers.replication_error('tableCfs is null') if table_cfs.nil?
    Arguments.listed(table_cfs)
    Peers.change(id) { |c| c[:table_cfs] = Peers.add_tables(c[:table_cfs], table_cfs) }
  end

  def remove_peer_tableCFs(id, table_cfs)
    Peers.replication_error('tableCfs is null') if table_cfs.nil?
    Arguments.listed(table_cfs)
    Peers.change(id) { |c| c[:table_cfs] = Peers.remove_tables(c[:table_cfs], table_cfs, id) }
  end

  def set_peer_exclude_tableCFs(id, exclude_peer_table_cfs = nil)
    return if exclude_peer_table_cfs.nil?
    Arguments.listed(exclude_peer_table_cfs)
    Peers.change(id) { |c| c[:exclude_table_cfs] = Peers.table_cfs(exclude_peer_table_cfs) }
  end

  def append_peer_exclude_tableCFs(id, table_cfs)
    return if table_cfs.nil?
    Arguments.listed(table_cfs)
    Peers.change(id) { |c| c[:exclude_table_cfs] = Peers.add_tables(c[:exclude_table_cfs], table_cfs) }
  end

  def remove_peer_exclude_tableCFs(id, table_cfs)
    return if table_cfs.nil?
    Arguments.listed(table_cfs)
    Peers.change(id) { |c| c[:exclude_table_cfs] = Peers.remove_tables(c[:exclude_table_cfs], table_cfs, id, "exclude-Table-Cfs for peer: #{id} is null") }
  end

  # Each of these six sets, adds to or removes from one of two lists of namespaces.
  def change_namespaces(id, field, names)
    return if names.nil?
    Peers.change(id) { |c| c[field] = yield(c[field]).uniq }
  end

  def set_peer_namespaces(id, namespaces)
    Arguments.listed(namespaces) unless namespaces.nil?
    change_namespaces(id, :namespaces, namespaces) { |_| namespaces }
  end

  def append_peer_namespaces(id, namespaces)
    change_namespaces(id, :namespaces, namespaces) { |old| old + namespaces }
  end

  def remove_peer_namespaces(id, namespaces)
    change_namespaces(id, :namespaces, namespaces) { |old| old - namespaces }
  end

  def set_peer_exclude_namespaces(id, exclude_namespaces)
    Arguments.listed(exclude_namespaces) unless exclude_namespaces.nil?
    change_namespaces(id, :exclude_namespaces, exclude_namespaces) { |_| exclude_namespaces }
  end

  def append_peer_exclude_namespaces(id, namespaces)
    change_namespaces(id, :exclude_namespaces, namespaces) { |old| old + namespaces }
  end

  def remove_peer_exclude_namespaces(id, namespaces)
    change_namespaces(id, :exclude_namespaces, namespaces) { |old| old - namespaces }
  end

  def set_peer_bandwidth(id, bandwidth = 0)
    Peers.change(id) { |c| c[:bandwidth] = bandwidth }
  end

  def set_peer_replicate_all(id, replicate_all)
    Peers.change(id) { |c| c[:replicate_all] = replicate_all }
  end

  def set_peer_serial(id, serial)
    Peers.change(id) { |c| c[:serial] = serial }
  end

  # --- tables ---

  def list_replicated_tables(regex = '.*')
    out.header(['TABLE:COLUMNFAMILY', 'ReplicationType'], [32])
    pattern = Regexp.new(Arguments.pattern(regex))
    Master.call('GetTableDescriptors', { include_sys_tables: false })[:table_schema].each do |schema|
      name = Names.text(schema[:table_name])
      next unless pattern.match?(name)
      schema[:column_families].each do |f|
        scope = Descriptor.values_of_family(f)['REPLICATION_SCOPE'].to_i
        next if scope == 0
        out.row(["#{name}:#{f[:name]}", { 1 => 'GLOBAL', 2 => 'SERIAL' }[scope] || 'UNKNOWN'], true, [32])
      end
    end
    out.footer
  end

  def set_scope(name, scope)
    schema = Descriptor.get(name)
    schema[:column_families].each { |f| Descriptor.set(f, 'REPLICATION_SCOPE', scope) }
    Master.call('ModifyTable', { table_name: Names.table(name), table_schema: schema })
  end

  def enable_table_replication(table_name)
    raise ArgumentError, "Unknown table #{table_name}!" unless Tables.exists?(table_name)
    peers = Peers.all
    Names.illegal('Found no peer cluster for replication.') if peers.empty?
    schema = Descriptor.get(table_name)
    splits = Meta.split_keys(table_name)
    peers.each { |p| Peers.sync_table(p, schema, splits) if Peers.replicates?(p[:config], table_name) }
    set_scope(table_name, 1)
    puts "The replication of table '#{table_name}' successfully enabled"
  end

  def disable_table_replication(table_name)
    set_scope(table_name, 0)
    puts "Replication of table '#{table_name}' successfully disabled."
  end

  def peer_modification_enabled
    v = Master.call('IsReplicationPeerModificationEnabled')[:enabled]
    out.row([v.to_s])
    v
  end

  def peer_modification_switch(enable_or_disable, drain_procs = false)
    on = Arguments.boolean(enable_or_disable)
    Arguments.boolean(drain_procs)
    old = Master.call('ReplicationPeerModificationSwitch', { on: on })[:previous_value]
    out.row(["Previous peer modification state : #{old}"])
    old
  end
end
Shell.need('ddl')
