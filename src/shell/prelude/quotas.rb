# SPDX-License-Identifier: Apache-2.0
# Quotas: sets them, and lists hbase:quota in the format of HBase's shell.

module Quotas
  THROTTLES = { req_num: 'REQUEST_NUMBER', req_size: 'REQUEST_SIZE', write_num: 'WRITE_NUMBER', write_size: 'WRITE_SIZE',
                read_num: 'READ_NUMBER', read_size: 'READ_SIZE', req_capacity_unit: 'REQUEST_CAPACITY_UNIT',
                write_capacity_unit: 'WRITE_CAPACITY_UNIT', read_capacity_unit: 'READ_CAPACITY_UNIT',
                atomic_read_size: 'ATOMIC_READ_SIZE', atomic_req_num: 'ATOMIC_REQUEST_NUMBER',
                atomic_write_size: 'ATOMIC_WRITE_SIZE', req_handler_usage_ms: 'REQUEST_HANDLER_USAGE_MS' }
  UNITS = { 'sec' => :SECONDS, 'min' => :MINUTES, 'hour' => :HOURS, 'day' => :DAYS }
  UNIT_TEXTS = { SECONDS: 'sec', MINUTES: 'min', HOURS: 'hour', DAYS: 'day', MILLISECONDS: 'millisec', MICROSECONDS: 'microsec', NANOSECONDS: 'nanosec' }

  def self.set(fields)
    Master.call('SetQuota', fields)
    nil
  end

  # --- listing ---

  def self.size_text(n)
    [['P', 1 << 50], ['T', 1 << 40], ['G', 1 << 30], ['M', 1 << 20], ['K', 1 << 10]].each do |unit, size|
      return format('%.2f%s', n.to_f / size, unit) if n >= size
    end
    format('%.2fB', n)
  end

  def self.limit_text(type, n)
    case type
    when /SIZE/ then size_text(n)
    when /CAPACITY/ then "#{n}CU"
    when /NUMBER/ then "#{n}req"
    else "#{n}ms"
    end
  end

  def self.throttle_text(type, q)
    "TYPE => THROTTLE, THROTTLE_TYPE => #{type}, LIMIT => #{limit_text(type, q[:soft_limit])}/#{UNIT_TEXTS[q[:time_unit]]}, SCOPE => #{q[:scope]}"
  end

  # The texts of a Quotas message; owner: [constant, name] of the owner of a space quota.
  def self.texts(bytes, owner)
    q = Wire.decode('Quotas', bytes[4..-1])
    list = []
    list << 'GLOBAL_BYPASS => true' if q[:bypass_globals]
    throttle = q[:throttle] || {}
    THROTTLES.each { |field, type| list << throttle_text(type, throttle[field]) if throttle[field] }
    s = q[:space]
    if s && !s[:soft_limit].nil?
      list << "TYPE => SPACE, #{owner[0]} => #{owner[1]}, LIMIT => #{size_text(s[:soft_limit])}, VIOLATION_POLICY => #{s[:violation_policy]}"
    end
    list
  end

  def self.owner_of(row)
    kind, name = row[0, 2], row[2..-1]
    case kind
    when 'n.' then ['NAMESPACE', name]
    when 't.' then ['TABLE', name]
    when 'u.' then ['USER', name]
    when 'r.' then ['REGIONSERVER', name]
    end
  end

  # Rows of hbase:quota, which does not exist on a cluster without quotas.
  def self.rows(range, scan, &block)
    raise "Unknown table hbase:quota!" unless Tables.exists?('hbase:quota')
    Rows.scan('hbase:quota', range, scan, &block)
  end

  # Yields owner and quota; returns how many. HBase: QuotaRetriever, QuotaTableUtil.makeScan.
  def self.list(args = {})
    raise ArgumentError, 'Arguments should be a Hash' unless args.is_a?(Hash)
    args = args.dup
    limit = args.delete('LIMIT') || -1
    wanted = [USER, TABLE, NAMESPACE].inject({}) { |h, k| args.key?(k) ? h.merge(k => Shell.java_pattern(args.delete(k))) : h }
    raise ArgumentError, 'Unexpected arguments: ' + args.inspect unless args.empty?
    count = 0
    return count unless Tables.exists?('hbase:quota')
    Rows.scan('hbase:quota', {}, Wire.encode('Scan', { column: [{ family: 'q' }] })) do |cells|
      owner = owner_of(cells[0][0])
      next if owner.nil?
      cells.each do |c|
        each_of(owner, c, wanted) do |who, text|
          next if limit > 0 && count >= limit
          yield who, text
          count += 1
        end
      end
    end
    count
  end

  # q:s has the owner's quotas, q:s.NAME a user's quotas on a table or (with a colon at its end) in a namespace.
  def self.each_of(owner, c, wanted)
    return unless c[2] == 's' || c[2].start_with?('s.')
    parts = [owner]
    if c[2] != 's'
      rest = c[2][2..-1]
      parts << (rest[-1] == ':' ? ['NAMESPACE', rest[0...-1]] : ['TABLE', rest])
    end
    # HBase: a table or namespace alone means its own quotas, not those of users on it.
    parts_asked = wanted.key?(USER) || wanted.empty? ? parts : [owner]
    return unless wanted.all? { |k, pattern| (p = parts_asked.find { |e| e[0] == k }) && pattern.match?(p[1]) }
    who = parts.map { |k, v| "#{k} => #{v}" }.join(', ')
    texts(c[5], owner).each { |t| yield who, t }
  end

  # --- parsing ---

  def self.type_of(name)
    type = name.to_s
    unless THROTTLES.values.include?(type)
      raise HBaseError.make('java.lang.IllegalArgumentException', "No enum constant org.apache.hadoop.hbase.quotas.ThrottleType.#{type}")
    end
    type.to_sym
  end

  def self.bytes_of(n, unit)
    n << ({ 'k' => 10, 'm' => 20, 'g' => 30, 't' => 40, 'p' => 50 }[unit] || 0)
  end

  # For a parameter that is a long in Java: fails for a number of more than 64 bits.
  def self.long(n)
    Shell.need('big')
    Big === n ? n.to_int : n
  end

  def self.parse_limit(text, type)
    raise NoMethodError, "undefined method `downcase' for nil:NilClass" if text.nil?
    m = /\A(\d+)(req|cu|[bkmgtp])\/(sec|min|hour|day)\z/.match(text.to_s.downcase)
    raise ArgumentError, 'Invalid throttle limit syntax' if m.nil?
    limit = m[1].to_i
    case m[2]
    when 'req' then kind = type_of("#{type}_NUMBER")
    when 'cu' then kind = type_of("#{type}_CAPACITY_UNIT")
    else
      limit = bytes_of(limit, m[2])
      kind = type_of("#{type}_SIZE")
    end
    raise ArgumentError, 'Invalid throttle limit, must be greater than 0' if limit <= 0
    [kind, limit, UNITS[m[3]]]
  end

  def self.parse_size(text)
    m = /\A(\d+)([bkmgtp%]?)\z/.match(text.to_s.downcase)
    raise ArgumentError, 'Invalid size limit syntax' if m.nil?
    bytes_of(m[1].to_i, m[2])
  end

  def self.scope_of(text)
    text = text.to_s.upcase
    raise ArgumentError, 'Invalid throttle scope, must be either CLUSTER or MACHINE' unless %w[CLUSTER MACHINE].include?(text)
    text.to_sym
  end

  # The owner of a throttle; removes its options.
  def self.owner_fields(args)
    if args.key?(USER)
      fields = { user_name: args.delete(USER) }
      if args.key?(TABLE) then fields[:table_name] = Names.table(args.delete(TABLE))
      elsif args.key?(NAMESPACE) then fields[:namespace] = args.delete(NAMESPACE)
      end
      fields
    elsif args.key?(TABLE) then { table_name: Names.table(args.delete(TABLE)) }
    elsif args.key?(NAMESPACE) then { namespace: args.delete(NAMESPACE) }
    elsif args.key?(REGIONSERVER)
      args.delete(REGIONSERVER)
      { region_server: 'all' }
    else raise 'One of USER, TABLE, NAMESPACE or REGIONSERVER must be specified'
    end
  end

  def self.none_left(args)
    raise ArgumentError, 'Unexpected arguments: ' + args.inspect unless args.empty?
  end

  def self.throttle(args)
    type = args.key?(THROTTLE_TYPE) ? args.delete(THROTTLE_TYPE) : REQUEST
    kind, limit, unit = parse_limit(args.delete(LIMIT), type)
    scope = scope_of(args.key?(SCOPE) ? args.delete(SCOPE) : MACHINE)
    fields = owner_fields(args)
    none_left(args)
    if fields.key?(:region_server) && scope == :CLUSTER
      raise ArgumentError, 'Invalid region server throttle scope, must be MACHINE'
    end
    quota = { time_unit: unit, soft_limit: long(limit), scope: scope }
    set(fields.merge(throttle: { type: kind, timed_quota: quota }))
  end

  def self.unthrottle(args)
    fields = owner_fields(args)
    if args.key?(THROTTLE_TYPE)
      return set(fields.merge(throttle: { type: type_of(args.delete(THROTTLE_TYPE)) }))
    end
    none_left(args)
    set(fields.merge(throttle: {}))
  end

  def self.space_owner(args)
    raise ArgumentError, 'Only one of TABLE or NAMESPACE can be specified.' if args.key?(TABLE) && args.key?(NAMESPACE)
    return { table_name: Names.table(args[TABLE]) } if args.key?(TABLE)
    return { namespace: args[NAMESPACE] } if args.key?(NAMESPACE)
    raise ArgumentError, 'One of TABLE or NAMESPACE must be specified.'
  end

  def self.limit_space(args)
    limit = args[LIMIT].is_a?(Numeric) ? args[LIMIT] : parse_size(args[LIMIT])
    raise ArgumentError, 'Invalid space limit, must be greater than 0' if limit <= 0
    policy = Descriptor.choice(args[POLICY], %w[DISABLE NO_WRITES_COMPACTIONS NO_WRITES NO_INSERTS], 'org.apache.hadoop.hbase.quotas.SpaceViolationPolicy')
    set(space_owner(args).merge(space_limit: { quota: { soft_limit: long(limit), violation_policy: policy } }))
  end

  def self.remove_space(args)
    set(space_owner(args).merge(space_limit: { quota: { remove: true } }))
  end
end

class Command
  def set_quota(args = {})
    args = args.dup
    unless args.key?(TYPE)
      raise 'Expected TYPE argument' unless args.key?(GLOBAL_BYPASS)
      bypass = args.delete(GLOBAL_BYPASS)
      raise 'Expected USER' unless args.key?(USER)
      user = args.delete(USER)
      Quotas.none_left(args)
      return Quotas.set({ user_name: user, bypass_globals: bypass })
    end
    type = args.delete(TYPE)
    none = args[LIMIT] == NONE
    args.delete(LIMIT) if none
    case type
    when THROTTLE then none ? Quotas.unthrottle(args) : Quotas.throttle(args)
    when SPACE
      return Quotas.remove_space(args) if none
      raise ArgumentError, 'Expected a LIMIT to be provided' unless args.key?(LIMIT)
      raise ArgumentError, 'Expected a POLICY to be provided' unless args.key?(POLICY)
      Quotas.limit_space(args)
    else raise 'Invalid TYPE argument. got ' + type
    end
  end

  def list_quotas(args = {})
    out.header(%w[OWNER QUOTAS])
    out.footer(Quotas.list(args) { |owner, quota| out.row([owner, quota]) })
  end

  def list_quota_table_sizes(_args = {})
    out.header(%w[TABLE SIZE])
    sizes = Master.call('GetSpaceQuotaRegionSizes')[:sizes].each_with_object({}) { |s, h| h[Names.text(s[:table_name])] = s[:size] }
    JavaMap.order(sizes.keys).each { |t| out.row([t, sizes[t].to_s]) }
    out.footer(sizes.length)
  end

  def list_quota_snapshots(args = {})
    raise NoMethodError, "undefined method `[]' for nil:NilClass" if args.nil?
    raise TypeError, 'no implicit conversion of String into Integer' unless [Hash, String, Symbol].include?(args.class)
    out.header(%w[TABLE USAGE LIMIT IN_VIOLATION POLICY])
    list = quota_snapshots(args[REGIONSERVER]).select do |t, _|
      (args[TABLE].nil? || t[:qualifier] == args[TABLE]) && (args[NAMESPACE].nil? || t[:namespace] == args[NAMESPACE])
    end
    snapshots = list.each_with_object({}) { |(t, s), h| h[Names.text(t)] = s }
    JavaMap.order(snapshots.keys).each do |t|
      s = snapshots[t]
      status = s[:quota_status] || {}
      out.row([t, s[:quota_usage].to_i.to_s, s[:quota_limit].to_i.to_s, (status[:in_violation] || false).to_s,
               status[:in_violation] ? status[:violation_policy].to_s : 'None'])
    end
    out.footer(list.length)
  end

  # Snapshots of a region server, or those that the master keeps in hbase:quota (u:p in rows t.TABLE).
  def quota_snapshots(server)
    return Servers.call(Names.server_of(server), 'GetSpaceQuotaSnapshots')[:snapshots].map { |s| [s[:table_name], s[:snapshot]] } if server
    list = []
    Quotas.rows({ start: 't.', stop: 't/' }, Wire.encode('Scan', { column: [{ family: 'u', qualifier: ['p'] }] })) do |cells|
      bytes = cells[0][5]
      bytes = bytes[4..-1] if bytes[0, 4] == 'PBUF'
      list << [Names.table(cells[0][0][2..-1]), Wire.decode('SpaceQuotaSnapshot', bytes)]
    end
    list
  end

  def list_snapshot_sizes(args = {})
    out.header(%w[SNAPSHOT SIZE])
    count = 0
    Quotas.rows({ start: 't.', stop: 't/' }, Wire.encode('Scan', { column: [{ family: 'u' }] })) do |cells|
      cells.each do |c|
        next unless c[2].start_with?('ss.')
        bytes = c[5][0, 4] == 'PBUF' ? c[5][4..-1] : c[5]
        out.row([c[2][3..-1], Wire.decode('SpaceQuotaSnapshot', bytes)[:quota_usage].to_i.to_s])
        count += 1
      end
    end
    out.footer(count)
  end

  def enable_rpc_throttle
    switch_rpc_throttle(true)
  end

  def disable_rpc_throttle
    switch_rpc_throttle(false)
  end

  def switch_rpc_throttle(on)
    old = Master.call('SwitchRpcThrottle', { rpc_throttle_enabled: on })[:previous_rpc_throttle_enabled]
    out.row(["Previous rpc throttle state : #{old}"])
    old
  end

  def rpc_throttle_enabled
    v = Master.call('IsRpcThrottleEnabled')[:rpc_throttle_enabled]
    out.row([v.to_s])
    v
  end

  def enable_exceed_throttle_quota
    switch_exceed(true)
  end

  def disable_exceed_throttle_quota
    switch_exceed(false)
  end

  def switch_exceed(on)
    old = Master.call('SwitchExceedThrottleQuota', { exceed_throttle_quota_enabled: on })[:previous_exceed_throttle_quota_enabled]
    out.row(["Previous exceed throttle quota enabled : #{old}"])
    old
  end
end
Shell.need('ddl')
