# SPDX-License-Identifier: Apache-2.0
# Regions and servers: assignment, flush, compaction, split, merge, chores and their switches, configuration, procedures.

class Command
  # Prints a row with the value, and returns the value.
  def say(value, prefix = '')
    out.row(["#{prefix}#{value}"])
    value
  end

  # --- balancer, normalizer, chores ---

  def balance_options(args)
    raise ArgumentError, "Illegal arguments #{args}. Expected between 0 and 2 arguments, but got #{args.length}." if args.length > 2
    fields = {}
    args.each_with_index do |arg, i|
      unless arg.is_a?(String)
        raise ArgumentError, "Illegal argument in index #{i}: #{arg}. All arguments must be strings, but got #{arg.class}."
      end
      case arg
      when 'force', 'ignore_rit' then fields[:ignore_rit] = true
      when 'dry_run' then fields[:dry_run] = true
      else raise ArgumentError, "Illegal argument in index #{i}: #{arg}. Unknown option #{arg}, expected 'force', 'ignore_rit', or 'dry_run'."
      end
    end
    fields
  end

  def balanced(ran, calculated, executed)
    if ran
      out.row(['Balancer ran'])
      out.row(["Moves calculated: #{calculated.to_i}, moves executed: #{executed.to_i}"])
    else
      out.row(['Balancer did not run. See logs for details.'])
    end
    ran
  end

  def balancer(*args)
    r = Master.call('Balance', balance_options(args))
    balanced(r[:balancer_ran], r[:moves_calculated], r[:moves_executed])
  end

  def balance_switch(enable)
    say(Master.call('SetBalancerRunning', { on: Arguments.boolean(enable), synchronous: false })[:prev_balance_value] || false, 'Previous balancer state : ')
  end

  def balancer_enabled
    say(Master.call('IsBalancerEnabled')[:enabled])
  end

  def normalize(*args)
    fields = {}
    args.each do |arg|
      raise ArgumentError, "#{arg.class} of #{arg.inspect} is not of Hash or String type" unless arg.is_a?(String) || arg.is_a?(Hash)
      normalize_option(fields, arg)
    end
    say(Master.call('Normalize', fields)[:normalizer_ran])
  end

  def normalize_option(fields, arg)
    if arg.key?(TABLE_NAME)
      raise ArgumentError, "#{TABLE_NAME} must be of type String" unless arg[TABLE_NAME].is_a?(String)
      fields[:table_names] = [Names.table(arg[TABLE_NAME])]
    elsif arg.key?(TABLE_NAMES)
      raise ArgumentError, "#{TABLE_NAMES} must be of type Array" unless arg[TABLE_NAMES].is_a?(Array)
      fields[:table_names] = arg[TABLE_NAMES].map do |t|
        raise ArgumentError, "#{TABLE_NAMES} value #{t} must be of type String" unless t.is_a?(String)
        Names.table(t)
      end
    elsif arg.key?(REGEX)
      raise ArgumentError, "#{REGEX} must be of type String" unless arg[REGEX].is_a?(String)
      fields[:regex] = arg[REGEX]
    elsif arg.key?(NAMESPACE)
      raise ArgumentError, "#{NAMESPACE} must be of type String" unless arg[NAMESPACE].is_a?(String)
      fields[:namespace] = arg[NAMESPACE]
    else
      raise ArgumentError, "Unrecognized argument #{arg}"
    end
  end

  def normalizer_switch(enable)
    say(Master.call('SetNormalizerRunning', { on: Arguments.boolean(enable) })[:prev_normalizer_value] || false)
  end

  def normalizer_enabled
    say(Master.call('IsNormalizerEnabled')[:enabled])
  end

  def is_in_maintenance_mode
    say(Master.call('IsMasterInMaintenanceMode')[:inMaintenanceMode])
  end

  def hbck_chore_run
    Master.ask('HbckService', 'RunHbckChore', 'RunHbckChore', {})[:ran]
  end

  def catalogjanitor_run
    Master.call('RunCatalogScan')[:scan_result]
  end

  def catalogjanitor_switch(enable)
    say(Master.call('EnableCatalogJanitor', { enable: Arguments.boolean(enable) })[:prev_value] || false)
  end

  def catalogjanitor_enabled
    say(Master.call('IsCatalogJanitorEnabled')[:value])
  end

  def cleaner_chore_run
    Master.call('RunCleanerChore')[:cleaner_chore_ran]
  end

  def cleaner_chore_switch(enable)
    say(Master.call('SetCleanerChoreRunning', { on: Arguments.boolean(enable) })[:prev_value] || false)
  end

  def cleaner_chore_enabled
    say(Master.call('IsCleanerChoreEnabled')[:value])
  end

  def snapshot_cleanup_switch(enable)
    say(Master.call('SwitchSnapshotCleanup', { enabled: Arguments.boolean(enable), synchronous: false })[:prev_snapshot_cleanup], 'Previous snapshot cleanup state : ')
  end

  def snapshot_cleanup_enabled
    say(Master.call('IsSnapshotCleanupEnabled')[:enabled])
  end

  def switch_type(type)
    raise ArgumentError, 'only SPLIT or MERGE accepted for type!' unless %w[SPLIT MERGE].include?(type)
    type.to_sym
  end

  def splitormerge_switch(type, enabled)
    types = [switch_type(type)]
    r = Master.call('SetSplitOrMergeEnabled', { enabled: Arguments.boolean(enabled), synchronous: false, switch_types: types })
    say(r[:prev_value][0] || false)
  end

  def splitormerge_enabled(type)
    say(Master.call('IsSplitOrMergeEnabled', { switch_type: switch_type(type) })[:enabled])
  end

  # --- regions ---

  # HBase: a name that is not a region's is taken as a table's.
  def region_of(name)
    r = Names.bytes(name) =~ /\A[0-9a-f]{32}\z/ || name =~ /,\d+(_[0-9A-F]{4})?\.[0-9a-f]{32}\.\z/ || %w[1588230740 hbase:meta,,1].include?(name) ? Meta.find(name) : nil
    return r unless r.nil?
    nil
  end

  def region_specifier(name)
    r = region_of(name)
    raise HBaseError.make('org.apache.hadoop.hbase.UnknownRegionException', name) if r.nil?
    { type: :REGION_NAME, value: r.name }
  end

  # The master takes full names only here; an encoded name is looked up.
  def named_region(name)
    found = Meta.find(Names.bytes(name))
    { type: :REGION_NAME, value: found.nil? ? name : found.name }
  end

  def assign(region_name)
    Master.call('AssignRegion', { region: named_region(region_name) })
    nil
  end

  def unassign(region_name, force = nil)
    Master.call('UnassignRegion', { region: named_region(region_name) })
    nil
  end

  def move(encoded_region_name, server_name = nil)
    fields = { region: { type: :ENCODED_REGION_NAME, value: Names.bytes(encoded_region_name) } }
    fields[:dest_server_name] = Names.server_of(Names.bytes(server_name)) unless server_name.nil? || server_name == ''
    Master.call('MoveRegion', fields)
    nil
  end

  def close_region(region_name, server = nil)
    puts "DEPRECATED!!! Use 'unassign' command instead."
  end

  def regioninfo(regionname)
    i = Master.ask('AdminService', 'GetRegionInfo', 'GetRegionInfo', { region: Names.region(regionname) })[:region_info]
    i[:start_key] ||= ''
    i[:end_key] ||= ''
    puts Region.describe(i)
  end

  def flush(name, family = nil)
    Arguments.bytes(family) unless family.nil?
    r = region_of(name)
    return flush_region(r, family) unless r.nil?
    return flush_server(name) if Names.full_server?(name)
    fields = { table_name: table_or_server(name) }
    fields[:column_family] = [family] unless family.nil?
    Master.call('FlushTable', fields)
    nil
  end

  # HBase takes a name that no table can have as a server's.
  def table_or_server(name)
    Names.table(name)
  rescue HBaseError => e
    raise e unless e.is?('IllegalArgumentException')
    Names.server_of(name)
  end

  def flush_region(r, family)
    fields = { region: { type: :REGION_NAME, value: r.name }, family: family }
    Servers.call(Servers.of_region(r), 'FlushRegion', fields)
    nil
  end

  def flush_server(name)
    sn = Names.server_of(name)
    Servers.call(sn, 'GetOnlineRegion')[:region_info].each do |i|
      Servers.call(sn, 'FlushRegion', { region: { type: :REGION_NAME, value: Region.name(i) } })
    end
    nil
  end

  def flush_master_store
    Master.call('FlushMasterStore')
    nil
  end

  def compact(name, family = nil, type = 'NORMAL')
    compact_by(name, family, type, false)
  end

  def major_compact(name, family = nil, type = 'NORMAL')
    compact_by(name, family, type, true)
  end

  def compact_by(name, family, type, major)
    raise ArgumentError, 'only NORMAL or MOB accepted for type!' unless %w[NORMAL MOB].include?(type)
    Arguments.bytes(family) unless family.nil?
    r = region_of(name)
    return compact_mob(name, family, major) if r.nil? && type == 'MOB'
    list = r.nil? ? table_regions(name) : [r]
    list.each { |e| compact_region(Servers.of_region(e), e.name, family, major) unless e.server.nil? }
    nil
  end

  # HBase: RawAsyncHBaseAdmin.compact with CompactType.MOB asks the master, in the name of a region that stands for the MOB files.
  def compact_mob(name, family, major)
    base = "#{Names.text(Names.table(name))},.mob,0"
    region = { type: :REGION_NAME, value: "#{base}.#{Bytes.md5(base)}." }
    Master.ask('AdminService', 'CompactRegion', 'CompactRegion', { region: region, major: major, family: family })
    nil
  end

  def table_regions(name)
    list = Meta.regions(Names.text(Names.table(name)))
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', name) if list.empty?
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotEnabledException', name) if Tables.disabled?(name)
    list
  end

  def compact_region(sn, region, family, major)
    Servers.call(sn, 'CompactRegion', { region: { type: :REGION_NAME, value: region }, major: major, family: family })
  end

  def compact_rs(regionserver, major = false)
    sn = Names.server_of(regionserver)
    Servers.call(sn, 'GetOnlineRegion')[:region_info].each { |i| compact_region(sn, Region.name(i), nil, major) }
    nil
  end

  def compaction_states(table_name)
    table_regions(table_name).map do |r|
      begin
        Servers.call(Servers.of_region(r), 'GetRegionInfo', { region: { type: :REGION_NAME, value: r.name }, compaction_state: true })[:compaction_state]
      rescue HBaseError => e
        raise e unless e.is?('NotServingRegionException') # HBase: it moves or splits
      end
    end
  end

  def state_of_compactions(table_name)
    states = compaction_states(table_name)
    major = states.any? { |s| %i[MAJOR MAJOR_AND_MINOR].include?(s) }
    minor = states.any? { |s| %i[MINOR MAJOR_AND_MINOR].include?(s) }
    major && minor ? 'MAJOR_AND_MINOR' : major ? 'MAJOR' : minor ? 'MINOR' : 'NONE'
  end

  def compaction_state(table_name)
    say(state_of_compactions(table_name))
  end

  def compaction_switch(enable_disable, *server)
    out.header(["['SERVER'", "'PREV_STATE']"])
    enabled = Arguments.boolean(enable_disable)
    names = server.flatten.compact
    wrong = names.find { |name| !Names.full_server?(name) }
    Names.illegal("Invalid ServerName format: #{wrong}") unless wrong.nil?
    list = Servers.named(names, true)
    list.each { |sn| out.row([Names.server(sn), Servers.call(sn, 'CompactionSwitch', { enabled: enabled })[:prev_state].to_s]) }
    out.footer(list.length)
  end

  # HBase: RawAsyncHBaseAdmin.split: all regions of a table, or the region that has the key.
  def split(name, split_point = nil)
    Arguments.bytes(split_point) unless split_point.nil?
    r = region_of(name)
    return split_region(r, split_point) unless r.nil?
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', name) unless Tables.exists?(name)
    list = table_regions(name)
    list = list.select { |e| e.info[:start_key] <= split_point }[-1, 1] unless split_point.nil?
    list.each do |e|
      split_region(e, split_point)
    end
    nil
  end

  def split_region(r, point)
    if !point.nil? && r.info[:start_key] == point
      raise HBaseError.make('org.apache.hadoop.hbase.DoNotRetryIOException', 'should not give a splitkey which equals to startkey!')
    end
    i = r.info
    Master.call('SplitRegion', { region_info: i, split_row: point }, false)
    nil
  end

  def merge_region(*args)
    args = args.flatten.compact
    raise ArgumentError, 'Must pass at least 2 regions to merge' unless args.length > 1
    force = false
    force = args.pop if args.length > 2 && (args[-1] == true || args[-1] == false)
    wrong = args.find { |a| !a.is_a?(String) }
    raise ArgumentError, "Type of #{wrong.inspect} is #{wrong.class}, but expected String" unless wrong.nil?
    specifiers = args.map do |a|
      { type: :ENCODED_REGION_NAME, value: a =~ /\A[0-9a-f]{32}\z/ ? a : region_specifier(a)[:value][-33, 32] }
    end
    specifiers.each { |s| raise HBaseError.make('org.apache.hadoop.hbase.UnknownRegionException', "Can't invoke merge on unknown region #{s[:value]}") if Meta.find(s[:value]).nil? }
    if args.uniq.length != args.length
      raise HBaseError.make('org.apache.hadoop.hbase.exceptions.MergeRegionException',
                            'org.apache.hadoop.hbase.exceptions.MergeRegionException: Duplicate regions specified; cannot merge a region to itself. ' \
                            "Passed in #{args.length} but only #{args.uniq.length} unique.")
    end
    Master.call('MergeTableRegions', { region: specifiers, forcible: Arguments.boolean(force) })
    nil
  end

  def truncate_region(region_name)
    r = region_of(region_name)
    raise HBaseError.make('org.apache.hadoop.hbase.UnknownRegionException', "Invalid region: #{region_name}") if r.nil?
    Shell.confirm("Truncate the region #{region_name}")
    Master.call('TruncateRegion', { region_info: r.info })
    nil
  end

  def clear_block_cache(table_name)
    blocks = bytes = size = 0
    failed = 0
    table_regions(table_name).group_by { |r| r.server_name }.each_value do |list|
      s = Servers.call(Servers.of_region(list[0]), 'ClearRegionBlockCache', { region: list.map { |r| { type: :REGION_NAME, value: r.name } } })[:stats]
      blocks += s[:evicted_blocks].to_i
      bytes += s[:bytes_evicted].to_i
      size += s[:max_cache_size].to_i
      failed += s[:exception].length
    end
    out.row(["CacheEvictionStats{evictedBlocks=#{blocks}, maxCacheSize=#{size}, failedRegionsSize=#{failed}, failedRegions=[]}"])
    nil
  end

  def clear_compaction_queues(server_name, queue_name = nil)
    queues = queue_name.nil? ? %w[long short] : [queue_name].flatten
    queues.each { |q| raise ArgumentError, "Unknown queue name #{q}" unless %w[long short].include?(q) }
    Servers.call(Names.server_of(server_name), 'ClearCompactionQueues', { queue_name: queues })
    nil
  end

  # --- servers ---

  def wal_roll(server_name)
    Servers.call(Names.server_of(server_name), 'RollWALWriter')
    nil
  end

  def server_list(title, names)
    out.header([title])
    names.each { |n| out.row([n]) }
    out.footer(names.length)
  end

  def list_deadservers
    server_list('SERVERNAME', Master.status(:DEAD_SERVERS)[:dead_servers].map { |s| Names.server(s) })
  end

  def list_liveservers
    server_list('SERVERNAME', Servers.live.map { |s| Names.server(s) })
  end

  def list_unknownservers
    server_list('SERVERNAME', Master.status(:UNKNOWN_SERVERS)[:unknown_servers].map { |s| Names.server(s) })
  end

  def clear_deadservers(*dead_servers)
    list = dead_servers.flatten.compact
    servers = list.empty? ? Master.status(:DEAD_SERVERS)[:dead_servers] : list.map { |s| Names.server_of(s) }
    left = Master.call('ClearDeadServers', { server_name: servers })[:server_name].map { |s| Names.server(s) }
    if left.empty?
      out.row(['true'])
      return []
    end
    out.row(['Some dead server clear failed'])
    out.row(['SERVERNAME'])
    left.each { |s| out.row([s]) }
    out.footer(left.length)
    left
  end

  def list_decommissioned_regionservers
    server_list('DECOMMISSIONED REGION SERVERS', Master.call('ListDecommissionedRegionServers')[:server_name].map { |s| Names.server(s) })
  end

  def decommission_regionservers(server_names, should_offload = false)
    unless server_names.is_a?(Array) || server_names.is_a?(String)
      raise ArgumentError, "#{server_names.class} of #{server_names.inspect} is not of Array/String type"
    end
    unless should_offload == true || should_offload == false || should_offload.is_a?(String)
      raise ArgumentError, "#{should_offload} is not a boolean value"
    end
    list = Servers.named([server_names].flatten, false)
    raise ArgumentError, "Could not find any server(s) with specified name(s): #{server_names}" if list.empty?
    Master.call('DecommissionRegionServers', { server_name: list, offload: Arguments.boolean(should_offload) })
    nil
  end

  def recommission_regionserver(server_name, encoded_region_names = [])
    raise ArgumentError, "#{server_name.class} of #{server_name.inspect} is not of String type" unless server_name.is_a?(String)
    raise ArgumentError, "#{encoded_region_names.class} of #{encoded_region_names.inspect} is not of Array type" unless encoded_region_names.is_a?(Array)
    list = Servers.named([server_name], false)
    raise ArgumentError, "Could not find any server with name #{server_name}" if list.empty?
    Master.call('RecommissionRegionServer', { server_name: list[0], region: encoded_region_names.map { |r| { type: :ENCODED_REGION_NAME, value: r } } })
    nil
  end

  def stop_master
    Master.call('StopMaster')
    nil
  end

  def stop_regionserver(hostport)
    text = Arguments.string(hostport)
    Names.null('Cannot invoke "String.lastIndexOf(String)" because "hostAndPort" is null') if text.nil?
    Names.illegal("Not a host:port pair: #{text}") unless text.include?(':')
    host, port = Names.host_and_port(text)
    raise HBaseError.make('java.lang.NumberFormatException', "For input string: \"#{text[/[^:]*\z/]}\"") if port.nil?
    Wire.call(host, port.to_i, 'AdminService', 'StopServer', Wire.encode('StopServerRequest', { reason: "Called by admin client hconnection" }))
    nil
  end

  def rit
    list = Master.status(:REGIONS_IN_TRANSITION)[:regions_in_transition]
    list.each do |v|
      s = v[:region_state]
      i = s[:region_info]
      i[:start_key] ||= ''
      out.row(["#{Bytes.toStringBinary(Region.name(i))} state=#{s[:state]}, ts=#{Time.at(s[:stamp].to_i / 1000)}, server=null"])
    end
    out.footer(list.length)
  end

  def zk_dump
    m = Master.status(:MASTER)[:master]
    meta = Meta.meta_region
    puts "HBase is rooted at /hbase"
    puts 'Active master address: '
    puts " #{Names.server(m)}"
    puts 'Backup master addresses:'
    Master.status(:BACKUP_MASTERS)[:backup_masters].each { |s| puts " #{Names.server(s)}" }
    puts 'Region server holding hbase:meta:'
    puts " #{meta.server_name}"
    puts 'Region servers:'
    Servers.live.each { |s| puts " #{Names.server(s)}" }
    puts "Quorum Server Statistics:"
    Wire.registry.to_s.split(',').each do |server|
      puts " #{server}"
      zookeeper_lines(server).each { |line| puts "  #{line}" }
    end
    nil
  end

  def zookeeper_lines(server)
    host, port = Names.host_and_port(server)
    Shell.zookeeper_stat(host, port || '2181').split("\n")
  rescue RuntimeError => e
    ["ERROR: #{e.message}"]
  end

  # Tracing needs a tracer in the JVM; this shell has none, so tracing never begins.
  def trace(startstop = 'status', spanname = 'HBaseShell')
    @@tracing = startstop == 'start' ? true : startstop == 'stop' ? false : @@tracing
  end
  @@tracing = false

  # --- configuration ---

  def update_config(server_name)
    Servers.call(Names.server_of(server_name), 'UpdateConfiguration')
    nil
  end

  def update_all_config
    m = Master.status(:MASTER)[:master]
    ([m] + Servers.live).each { |sn| Servers.call(sn, 'UpdateConfiguration') }
    nil
  end

  def update_rsgroup_config(group_name)
    Shell.need('rsgroup')
    group = Groups.find(group_name) || Names.illegal("RSGroup does not exist: #{group_name}")
    Servers.live.select { |sn| group[:servers].any? { |s| s[:host_name] == sn[:host_name] && s[:port] == sn[:port] } }.each { |sn| Servers.call(sn, 'UpdateConfiguration') }
    nil
  end
end
Shell.need('ddl')
