# SPDX-License-Identifier: Apache-2.0
# The descriptors of tables and families: from the shell's options, and as HBase prints them.

# A table's or family's attributes: values and configuration in one map, as in HBase's descriptors.
module Descriptor
  FAMILY_DEFAULTS = [
    ['INDEX_BLOCK_ENCODING', 'NONE'],
    ['VERSIONS', '1'], ['KEEP_DELETED_CELLS', 'FALSE'], ['DATA_BLOCK_ENCODING', 'NONE'], ['TTL', '2147483647'],
    ['MIN_VERSIONS', '0'], ['REPLICATION_SCOPE', '0'], ['BLOOMFILTER', 'ROW'], ['IN_MEMORY', 'false'],
    ['COMPRESSION', 'NONE'], ['BLOCKCACHE', 'true'], ['BLOCKSIZE', '65536']
  ]
  # HBASE: RESERVED_KEYWORDS of its builders; every other attribute is printed as METADATA.
  FAMILY_RESERVED = %w[ENCRYPTION ENCRYPTION_KEY IS_MOB MOB_THRESHOLD MOB_COMPACT_PARTITION_POLICY]
  TABLE_RESERVED = %w[MAX_FILESIZE READONLY MEMSTORE_FLUSHSIZE DURABILITY REGION_REPLICATION PRIORITY ERASURE_CODING_POLICY IS_META]
  BOOLEAN = /\A(true|false)\z/i

  def self.get(name)
    list = Master.call('GetTableDescriptors', { table_names: [Names.table(name)], include_sys_tables: true })[:table_schema]
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', name) if list.empty?
    list[0]
  end

  def self.values(schema)
    h = {}
    schema[:attributes].each { |a| h[a[:first]] = a[:second] }
    schema[:configuration].each { |c| h[c[:name]] = c[:value] }
    h
  end

  def self.set(schema, key, value)
    schema[:attributes].reject! { |a| a[:first] == key }
    schema[:configuration].reject! { |c| c[:name] == key }
    schema[:attributes] << { first: key, second: value.to_s } unless value.nil?
  end

  def self.family(schema, name)
    schema[:column_families].find { |f| f[:name] == name }
  end

  def self.new_family(name)
    check_family(name)
    { name: name, attributes: FAMILY_DEFAULTS.map { |k, v| { first: k, second: v } }, configuration: [] }
  end

  def self.check_family(name)
    Names.illegal('Column Family name can not be empty') if name.empty?
    Names.illegal("Family names cannot start with a period: #{name}") if name[0] == '.'
    name.each_byte do |b|
      next unless b < 32 || b == 127 || b == 58 || b == 92 || b == 47
      Names.illegal("Illegal character <#{b}>. Column Family names cannot contain control characters or colons: #{name}")
    end
  end

  # --- text ---

  # HBase: PrettyPrinter's time: "86400 SECONDS (1 DAY)".
  def self.ttl(text)
    n = text.to_i
    return 'FOREVER' if n == 2147483647
    return "#{n} SECOND#{n == 1 ? '' : 'S'}" if n < 60
    parts = []
    [['DAY', 86_400], ['HOUR', 3600], ['MINUTE', 60], ['SECOND', 1]].each do |unit, size|
      k = n / size
      n %= size
      parts << "#{k} #{unit}#{k == 1 ? '' : 'S'}" if k > 0
    end
    "#{text.to_i} SECONDS (#{parts.join(' ')})"
  end

  def self.bytes(text)
    n = text.to_i
    return text if n < 1024
    parts = []
    [['TB', 1 << 40], ['GB', 1 << 30], ['MB', 1 << 20], ['KB', 1 << 10], ['B', 1]].each do |unit, size|
      k = n / size
      n %= size
      parts << "#{k}#{unit}" if k > 0
    end
    "#{text} B (#{parts.join(' ')})"
  end

  # HBase: ColumnFamilyDescriptor.toString, in the order of Java's HashMap.
  def self.family_text(f)
    values = values_of_family(f)
    text = "{NAME => '#{Bytes.toStringBinary(f[:name])}'"
    known, meta = map_order(values.keys).partition { |k| FAMILY_DEFAULTS.any? { |d, _| d == k } || FAMILY_RESERVED.include?(k) }
    known.each { |k| text += ", #{k} => '#{shown(k, values[k])}'" }
    text += ', METADATA => {' + meta.map { |k| "'#{k}' => '#{values[k]}'" }.join(', ') + '}' unless meta.empty?
    unless f[:configuration].empty?
      text += ', CONFIGURATION => {' + f[:configuration].map { |c| "'#{c[:name]}' => '#{c[:value]}'" }.join(', ') + '}'
    end
    text + '}'
  end

  # The order in which Java's HashMap has keys of type Bytes; it begins with 32 buckets, made for the defaults.
  def self.map_order(keys)
    JavaMap.order(keys, 32) { |key| bytes_hash(key) }
  end

  # Bytes.hashCode as an unsigned number.
  def self.bytes_hash(key)
    h = 1
    key.each_byte { |b| h = (31 * h + (b > 127 ? b - 256 : b)) & 0xffffffff }
    h
  end

  def self.values_of_family(f)
    h = {}
    f[:attributes].each { |a| h[a[:first]] = a[:second] }
    h
  end

  def self.shown(key, value)
    case key
    when 'TTL' then ttl(value)
    when 'BLOCKSIZE' then bytes(value)
    when 'MOB_THRESHOLD' then value.length == 8 ? Bytes.signed(value).to_s : value
    when 'IS_MOB' then value.length == 1 && value.getbyte(0) < 2 ? (value.getbyte(0) == 1).to_s : value
    else value
    end
  end

  # HBase: TableDescriptor.toStringTableAttributes
  def self.table_text(schema)
    values = {}
    schema[:attributes].each { |a| values[a[:first]] = a[:second] }
    config = {}
    schema[:configuration].each { |c| config[c[:name]] = c[:value] }
    reserved = values.keys.select { |k| TABLE_RESERVED.include?(k) }.reject { |k| k =~ /\AIS_(META|ROOT)\z/ && values[k].downcase == 'false' }
    coprocessors = values.keys.select { |k| k =~ /\Acoprocessor\$\d+\z/i }
    meta = values.keys - reserved - coprocessors - %w[IS_META IS_ROOT]
    parts = reserved.sort.map { |k| "#{k} => '#{%w[MAX_FILESIZE MEMSTORE_FLUSHSIZE].include?(k) ? bytes(values[k]) : values[k]}'" }
    parts += coprocessors.sort.map { |k| "#{k} => '#{values[k]}'" }
    meta_text = meta.map { |k| [k, values[k]] } + config.map { |k, v| [k, v] }
    meta_text = meta_text.sort_by { |k, _| k }
    parts << 'METADATA => {' + meta_text.map { |k, v| "'#{k}' => '#{v}'" }.join(', ') + '}' unless meta_text.empty?
    parts.empty? ? '' : ", {TABLE_ATTRIBUTES => {#{parts.join(', ')}}}"
  end

  # --- from options ---

  def self.java_boolean(v)
    (v.to_s.downcase == 'true').to_s
  end

  def self.integer(v)
    return v.to_s if v.is_a?(Integer)
    unless v.to_s =~ /\A[+-]?\d+\z/
      raise HBaseError.make('java.lang.NumberFormatException', "For input string: \"#{v}\"")
    end
    v.to_s.to_i.to_s
  end

  def self.choice(v, list, klass)
    text = v.to_s
    unless list.include?(text)
      raise HBaseError.make('java.lang.IllegalArgumentException', "No enum constant #{klass}.#{text}")
    end
    text
  end

  # HBase: "1 DAY 2 HOURS" too.
  def self.seconds(v)
    return v.to_s if v.is_a?(Integer)
    text = v.to_s.strip
    return '2147483647' if text.upcase == 'FOREVER'
    return text if text =~ /\A\d+\z/
    total = 0
    text.upcase.scan(/(\d+)\s*(DAY|HOUR|MINUTE|SECOND)S?/) do |n, unit|
      total += n.to_i * { 'DAY' => 86_400, 'HOUR' => 3600, 'MINUTE' => 60, 'SECOND' => 1 }[unit]
    end
    total.to_s
  end

  def self.size(v)
    return v.to_s if v.is_a?(Integer)
    text = v.to_s.strip
    return text if text =~ /\A\d+\z/
    total = 0
    text.upcase.scan(/(\d+)\s*(TB|GB|MB|KB|B)/) do |n, unit|
      total += n.to_i * { 'TB' => 1 << 40, 'GB' => 1 << 30, 'MB' => 1 << 20, 'KB' => 1 << 10, 'B' => 1 }[unit]
    end
    total.to_s
  end

  ALGORITHMS = %w[LZO GZ NONE SNAPPY LZ4 BZIP2 ZSTD LZMA BROTLI]
  BLOOMS = %w[NONE ROW ROWCOL ROWPREFIX_FIXED_LENGTH]

  def self.algorithm(v)
    text = v.to_s.upcase
    raise ArgumentError, "Compression #{text} is not supported. Use one of #{ALGORITHMS.join(' ')}" unless ALGORITHMS.include?(text)
    text
  end

  def self.bloom(v)
    text = v.to_s.upcase
    raise ArgumentError, "BloomFilter type #{text} is not supported. Use one of #{BLOOMS.join(' ')}" unless BLOOMS.include?(text)
    text
  end

  def self.versions(v)
    text = integer(v)
    Names.illegal('Maximum versions must be positive') if text.to_i <= 0
    text
  end

  # The attribute that each option of a family sets; the shell applies them in this order.
  FAMILY_OPTIONS = {
    'BLOCKCACHE' => :java_boolean, 'REPLICATION_SCOPE' => :integer, 'CACHE_DATA_ON_WRITE' => :java_boolean,
    'CACHE_INDEX_ON_WRITE' => :java_boolean, 'CACHE_BLOOMS_ON_WRITE' => :java_boolean,
    'EVICT_BLOCKS_ON_CLOSE' => :java_boolean, 'IN_MEMORY' => :java_boolean, 'IN_MEMORY_COMPACTION' => :memory_compaction,
    'TTL' => :seconds, 'DATA_BLOCK_ENCODING' => :encoding, 'BLOCKSIZE' => :size, 'VERSIONS' => :versions,
    'MIN_VERSIONS' => :integer, 'KEEP_DELETED_CELLS' => :keep_deleted, 'COMPRESS_TAGS' => :java_boolean,
    'PREFETCH_BLOCKS_ON_OPEN' => :java_boolean, 'IS_MOB' => :java_boolean, 'MOB_THRESHOLD' => :integer,
    'NEW_VERSION_BEHAVIOR' => :java_boolean, 'BLOOMFILTER' => :bloom, 'COMPRESSION' => :algorithm,
    'ENCRYPTION' => :upper, 'COMPRESSION_COMPACT' => :algorithm, 'COMPRESSION_COMPACT_MAJOR' => :algorithm,
    'COMPRESSION_COMPACT_MINOR' => :algorithm, 'STORAGE_POLICY' => :upper, 'MOB_COMPACT_PARTITION_POLICY' => :mob_policy,
    'DFS_REPLICATION' => :integer
  }

  def self.upper(v)
    v.to_s.upcase
  end

  def self.memory_compaction(v)
    choice(v, %w[NONE BASIC EAGER ADAPTIVE], 'org.apache.hadoop.hbase.MemoryCompactionPolicy')
  end

  def self.encoding(v)
    choice(v, %w[NONE PREFIX DIFF FAST_DIFF ROW_INDEX_V1], 'org.apache.hadoop.hbase.io.encoding.DataBlockEncoding')
  end

  def self.keep_deleted(v)
    choice(v.to_s.upcase, %w[FALSE TRUE TTL], 'org.apache.hadoop.hbase.KeepDeletedCells')
  end

  def self.mob_policy(v)
    text = v.to_s.upcase
    raise ArgumentError, "MOB_COMPACT_PARTITION_POLICY #{text} is not supported. Use one of DAILY WEEKLY MONTHLY" unless %w[DAILY WEEKLY MONTHLY].include?(text)
    text
  end

  # HBase: Admin.hcd. `options` is consumed.
  def self.family_of(options, schema)
    return new_family(options) if options.is_a?(String)
    name = options.delete(NAME)
    raise ArgumentError, "Column family #{options} must have a name" if name.nil?
    f = family(schema, name) || new_family(name)
    FAMILY_OPTIONS.each do |key, convert|
      set(f, key, __send__(convert, options.delete(key))) if options.key?(key)
    end
    metadata(f, options.delete(METADATA)) if options[METADATA]
    configuration(f, options.delete(CONFIGURATION)) if options[CONFIGURATION]
    options.each_key { |k| puts "Unknown argument ignored for column family #{name}: #{k}" }
    f
  end

  TABLE_OPTIONS = {
    'ERASURE_CODING_POLICY' => :text, 'OWNER' => :text, 'MAX_FILESIZE' => :size, 'READONLY' => :java_boolean,
    'COMPACTION_ENABLED' => :java_boolean, 'SPLIT_ENABLED' => :java_boolean, 'MERGE_ENABLED' => :java_boolean,
    'NORMALIZATION_ENABLED' => :java_boolean, 'NORMALIZER_TARGET_REGION_COUNT' => :integer,
    'NORMALIZER_TARGET_REGION_SIZE' => :integer, 'NORMALIZER_TARGET_REGION_SIZE_MB' => :integer,
    'MEMSTORE_FLUSHSIZE' => :size, 'DURABILITY' => :durability, 'PRIORITY' => :integer, 'FLUSH_POLICY' => :text,
    'REGION_MEMSTORE_REPLICATION' => :java_boolean, 'SPLIT_POLICY' => :text, 'REGION_REPLICATION' => :integer
  }

  def self.text(v)
    v.to_s
  end

  def self.durability(v)
    choice(v, %w[USE_DEFAULT SKIP_WAL ASYNC_WAL SYNC_WAL FSYNC_WAL], 'org.apache.hadoop.hbase.client.Durability')
  end

  # HBase: Admin.update_htd_from_arg.
  def self.update_table(schema, options)
    TABLE_OPTIONS.each do |key, convert|
      next unless options.key?(key)
      value = __send__(convert, options.delete(key))
      if key == 'NORMALIZER_TARGET_REGION_SIZE'
        warn 'Use of NORMALIZER_TARGET_REGION_SIZE has been deprecated and will be removed in future version, please use NORMALIZER_TARGET_REGION_SIZE_MB instead'
        key = 'NORMALIZER_TARGET_REGION_SIZE_MB'
      end
      set(schema, key, value)
    end
    metadata(schema, options.delete(METADATA)) if options[METADATA]
    configuration(schema, options.delete(CONFIGURATION)) if options[CONFIGURATION]
  end

  def self.metadata(to, map)
    raise ArgumentError, "#{METADATA} must be a Hash type" unless map.is_a?(Hash)
    map.each { |k, v| set(to, k.to_s, v) }
  end

  # A family's configuration is its own list; a table's goes into its values.
  def self.configuration(to, map)
    raise ArgumentError, "#{CONFIGURATION} must be a Hash type" unless map.is_a?(Hash)
    map.each do |k, v|
      next set(to, k.to_s, v) if to.key?(:table_name)
      to[:configuration].reject! { |c| c[:name] == k.to_s }
      to[:configuration] << { name: k.to_s, value: v.to_s } unless v.nil?
    end
  end
end
