# SPDX-License-Identifier: Apache-2.0
# HBase's Admin and the builders of descriptors, as scripts use them; by the calls of the shell's own commands.

%w[names descriptor ddl namespace snapshots tools].each { |name| Shell.need(name) }

module JavaClient
  # The setters and getters of a family's or table's descriptor: name => attribute, conversion of its value, default.
  module Attributes
    def self.add(to, map)
      map.each do |name, (key, convert, default)|
        to.__send__(:define_method, "set#{name}".to_sym) do |v|
          Descriptor.set(@schema, key, Descriptor.__send__(convert, v.is_a?(JavaEnum) ? v.name : v))
          self
        end
        to.__send__(:define_method, "#{convert == :java_boolean ? 'is' : 'get'}#{name}".to_sym) do
          text = Descriptor.values(@schema)[key]
          text.nil? ? default : Attributes.value(convert, text)
        end
      end
    end

    # As Java's getter returns it; an enum as its name.
    def self.value(convert, text)
      case convert
      when :java_boolean then text.downcase == 'true'
      when :integer, :versions, :seconds, :size then text.to_i
      else text
      end
    end

    # Of a descriptor's schema: a builder's changes reach neither what it was made from nor what it has built.
    def self.copy(schema)
      case schema
      when Hash then schema.each_with_object({}) { |(k, v), h| h[k] = copy(v) }
      when Array then schema.map { |v| copy(v) }
      else schema
      end
    end
  end

  # A family: descriptor and builder in one, as HColumnDescriptor was.
  class ColumnFamilyDescriptorBuilder < Part
    attr_reader :schema

    Attributes.add(self, 'MaxVersions' => ['VERSIONS', :versions, 1], 'MinVersions' => ['MIN_VERSIONS', :integer, 0],
                         'TimeToLive' => ['TTL', :seconds, 2147483647], 'BlockCacheEnabled' => ['BLOCKCACHE', :java_boolean, true],
                         'InMemory' => ['IN_MEMORY', :java_boolean, false], 'Blocksize' => ['BLOCKSIZE', :size, 65_536],
                         'BlockSize' => ['BLOCKSIZE', :size, 65_536], 'BloomFilterType' => ['BLOOMFILTER', :bloom, 'ROW'],
                         'CompressionType' => ['COMPRESSION', :algorithm, 'NONE'], 'DataBlockEncoding' => ['DATA_BLOCK_ENCODING', :encoding, 'NONE'],
                         'Scope' => ['REPLICATION_SCOPE', :integer, 0], 'KeepDeletedCells' => ['KEEP_DELETED_CELLS', :keep_deleted, 'FALSE'],
                         'MobEnabled' => ['IS_MOB', :java_boolean, false], 'MobThreshold' => ['MOB_THRESHOLD', :integer, 102_400])

    def self.of(name)
      new(name)
    end

    def self.newBuilder(name)
      new(name.is_a?(self) ? Attributes.copy(name.schema) : name)
    end

    def initialize(name)
      @schema = name.is_a?(Hash) ? name : Descriptor.new_family(bytes(name))
    end

    def setValue(key, value)
      Descriptor.set(@schema, key.to_s, value)
      self
    end

    def setConfiguration(key, value)
      Descriptor.configuration(@schema, { key => value })
      self
    end

    def getConfigurationValue(key)
      pair = (@schema[:configuration] || []).find { |c| c[:name] == key }
      pair.nil? ? nil : pair[:value]
    end

    def getValue(key)
      Descriptor.values(@schema)[key]
    end

    def getName
      @schema[:name]
    end
    alias getNameAsString getName

    def build
      self.class.new(Attributes.copy(@schema))
    end

    def toString
      Descriptor.family_text(@schema)
    end
    alias to_s toString
  end
  HColumnDescriptor = ColumnFamilyDescriptorBuilder
  ColumnFamilyDescriptor = ColumnFamilyDescriptorBuilder

  # A table, likewise.
  class TableDescriptorBuilder < Part
    attr_reader :schema

    Attributes.add(self, 'MaxFileSize' => ['MAX_FILESIZE', :size, -1], 'ReadOnly' => ['READONLY', :java_boolean, false],
                         'CompactionEnabled' => ['COMPACTION_ENABLED', :java_boolean, true], 'SplitEnabled' => ['SPLIT_ENABLED', :java_boolean, true],
                         'MergeEnabled' => ['MERGE_ENABLED', :java_boolean, true], 'MemStoreFlushSize' => ['MEMSTORE_FLUSHSIZE', :size, -1],
                         'Durability' => ['DURABILITY', :durability, 'USE_DEFAULT'], 'RegionReplication' => ['REGION_REPLICATION', :integer, 1],
                         'Priority' => ['PRIORITY', :integer, 0], 'RegionSplitPolicyClassName' => ['SPLIT_POLICY', :text, nil])

    def self.newBuilder(name)
      new(name.is_a?(self) ? Attributes.copy(name.schema) : name)
    end

    def initialize(name)
      @schema = name
      return if name.is_a?(Hash)
      @schema = { table_name: Names.table(JavaClient.name_of(name)), attributes: [], configuration: [], column_families: [] }
    end

    def setColumnFamily(family)
      @schema[:column_families] = @schema[:column_families].reject { |f| f[:name] == family.getName } + [family.schema]
      self
    end
    alias addFamily setColumnFamily
    alias addColumnFamily setColumnFamily
    alias modifyColumnFamily setColumnFamily
    alias modifyFamily setColumnFamily

    def setColumnFamilies(list)
      list.each { |f| setColumnFamily(f) }
      self
    end

    def removeColumnFamily(name)
      @schema[:column_families].reject! { |f| f[:name] == name }
      self
    end
    alias removeFamily removeColumnFamily

    def setValue(key, value)
      Descriptor.set(@schema, key.to_s, value)
      self
    end
    alias setConfiguration setValue

    def getValue(key)
      Descriptor.values(@schema)[key]
    end

    def getTableName
      JavaTableName.valueOf(getNameAsString)
    end

    def getNameAsString
      Names.text(@schema[:table_name])
    end

    def getColumnFamilies
      @schema[:column_families].map { |f| ColumnFamilyDescriptorBuilder.new(f) }
    end
    alias getFamilies getColumnFamilies

    def getColumnFamily(name)
      getColumnFamilies.find { |f| f.getName == name }
    end
    alias getFamily getColumnFamily

    def getColumnFamilyCount
      @schema[:column_families].length
    end

    def getColumnFamilyNames
      @schema[:column_families].map { |f| f[:name] }
    end
    alias getFamiliesKeys getColumnFamilyNames

    def hasColumnFamily(name)
      getColumnFamilyNames.include?(name)
    end
    alias hasFamily hasColumnFamily

    def build
      self.class.new(Attributes.copy(@schema))
    end

    def toString
      "'#{getNameAsString}'#{Descriptor.table_text(@schema)}, #{getColumnFamilies.map { |f| f.toString }.join(', ')}"
    end
    alias to_s toString
  end
  TableDescriptor = TableDescriptorBuilder
  HTableDescriptor = TableDescriptorBuilder

  class NamespaceDescriptor < Part
    PACKAGE = 'org.apache.hadoop.hbase'
    attr_reader :name, :configuration
    alias getName name

    def self.create(name)
      new(name)
    end

    def initialize(name, configuration = {})
      @name = name
      @configuration = configuration
    end

    def addConfiguration(key, value)
      @configuration[key.to_s] = value.to_s
      self
    end

    def build
      self
    end

    def toString
      "{NAME => '#{@name}'#{@configuration.map { |k, v| ", #{k} => '#{v}'" }.join('')}}"
    end
    alias to_s toString
  end

  CompactionState = JavaEnum.of('org.apache.hadoop.hbase.client.CompactionState', %w[NONE MINOR MAJOR MAJOR_AND_MINOR])

  class HBaseAdmin < Part
    # HBaseAdmin.new(conf) and .new(connection), as before HBase 2.
    def initialize(conf = nil)
      JavaClient.check_cluster(conf)
      @command = Command.new('admin')
    end

    def tableExists(name)
      Tables.exists?(JavaClient.name_of(name))
    end

    def isTableEnabled(name)
      Tables.enabled?(JavaClient.name_of(name))
    end

    def isTableDisabled(name)
      Tables.disabled?(JavaClient.name_of(name))
    end

    def isTableAvailable(name)
      isTableEnabled(name)
    end

    # Errors are the master's.
    def of_table(method, name, fields = {})
      Master.call(method, { table_name: Names.table(JavaClient.name_of(name)) }.merge(fields))
      nil
    end

    def createTable(descriptor, splits = nil)
      @command.create_table(descriptor.schema, splits)
      nil
    end

    def enableTable(name)
      of_table('EnableTable', name)
    end

    def disableTable(name)
      of_table('DisableTable', name)
    end

    def deleteTable(name)
      of_table('DeleteTable', name)
    end

    def truncateTable(name, preserve_splits = false)
      Master.call('truncateTable', { tableName: Names.table(JavaClient.name_of(name)), preserveSplits: preserve_splits })
      nil
    end

    def listTableNames(pattern = '.*')
      Tables.names(pattern).map { |n| JavaTableName.valueOf(n) }
    end

    def getTableNames(pattern = '.*')
      Tables.names(pattern)
    end

    def listTableDescriptors(pattern = '.*')
      Tables.names(pattern).map { |n| getDescriptor(n) }
    end
    alias listTables listTableDescriptors

    def getDescriptor(name)
      TableDescriptorBuilder.new(Descriptor.get(JavaClient.name_of(name)))
    end
    alias getTableDescriptor getDescriptor

    def modifyTable(name_or_descriptor, descriptor = nil)
      descriptor ||= name_or_descriptor
      Master.call('ModifyTable', { table_name: descriptor.schema[:table_name], table_schema: descriptor.schema, reopen_regions: true })
      nil
    end

    def addColumnFamily(name, family)
      of_table('AddColumn', name, column_families: family.schema)
    end
    alias addColumn addColumnFamily

    def modifyColumnFamily(name, family)
      of_table('ModifyColumn', name, column_families: family.schema)
    end
    alias modifyColumn modifyColumnFamily

    def deleteColumnFamily(name, family)
      of_table('DeleteColumn', name, column_name: family)
    end
    alias deleteColumn deleteColumnFamily

    def flush(name, family = nil)
      @command.flush(JavaClient.name_of(name), family)
    end

    def compact(name, family = nil)
      @command.compact(JavaClient.name_of(name), family)
    end

    def majorCompact(name, family = nil)
      @command.major_compact(JavaClient.name_of(name), family)
    end

    # Of the table or of the region with the name.
    def split(name, point = nil)
      @command.split(JavaClient.name_of(name), point)
    end

    def getCompactionState(name, *)
      CompactionState.valueOf(@command.state_of_compactions(JavaClient.name_of(name)))
    end

    def getConnection
      Connection.new
    end

    def getConfiguration
      JavaConfiguration.new
    end

    def createNamespace(descriptor)
      @command.create_namespace(descriptor.name, descriptor.configuration)
    end

    def deleteNamespace(name)
      Master.call('DeleteNamespace', { namespaceName: name })
      nil
    end

    def listNamespaceDescriptors
      Master.call('ListNamespaceDescriptors')[:namespaceDescriptor].map do |d|
        NamespaceDescriptor.new(d[:name], d[:configuration].each_with_object({}) { |c, h| h[c[:name]] = c[:value] })
      end
    end

    def listNamespaces
      listNamespaceDescriptors.map { |d| d.name }
    end

    def getNamespaceDescriptor(name)
      d = Master.call('GetNamespaceDescriptor', { namespaceName: name })[:namespaceDescriptor]
      NamespaceDescriptor.new(d[:name], d[:configuration].each_with_object({}) { |c, h| h[c[:name]] = c[:value] })
    end

    def listTableNamesByNamespace(name)
      Master.call('ListTableNamesByNamespace', { namespaceName: name })[:tableName].map { |t| JavaTableName.valueOf(Names.text(t)) }
    end

    # Of a server, or of its regions of a table.
    def getRegionMetrics(server, table = nil)
      load = getClusterStatus.getLoad(server)
      prefix = table.nil? ? '' : "#{JavaClient.name_of(table)},"
      load.nil? ? [] : load.getRegionsLoad.values.select { |r| r.getName.start_with?(prefix) }
    end

    def snapshot(name, table)
      @command.snapshot(JavaClient.name_of(table), name)
      nil
    end

    def listSnapshots(pattern = '.*')
      Snapshots.named(pattern).map { |s| SnapshotDescription.new(s) }
    end

    def deleteSnapshot(name)
      Snapshots.delete(name)
      nil
    end

    def cloneSnapshot(name, table)
      @command.clone_snapshot(name, JavaClient.name_of(table))
      nil
    end

    def restoreSnapshot(name)
      @command.restore_snapshot(name)
      nil
    end

    def getClusterStatus(*)
      Shell.need('operator')
      JavaOperator::ClusterStatus.new(Master.status)
    end
    alias getClusterMetrics getClusterStatus

    def getMaster
      getClusterStatus.getMaster
    end

    def getRegionServers(*)
      getClusterStatus.getServers
    end

    def getRegions(name)
      Shell.need('operator')
      Meta.regions(JavaClient.name_of(name)).map { |r| JavaOperator::RegionInfo.new(r.info) }
    end
    alias getTableRegions getRegions

    def stopRegionServer(host_port)
      @command.stop_regionserver(host_port.to_s)
      nil
    end

    def decommissionRegionServers(servers, offload)
      Master.call('DecommissionRegionServers', { server_name: servers.map { |s| Names.server_of(s.to_s) }, offload: offload })
      nil
    end

    def recommissionRegionServer(server, regions = [])
      named = regions.map { |r| { type: :ENCODED_REGION_NAME, value: r } }
      Master.call('RecommissionRegionServer', { server_name: Names.server_of(server.to_s), region: named })
      nil
    end

    def listDecommissionedRegionServers
      Shell.need('operator')
      Master.call('ListDecommissionedRegionServers')[:server_name].map { |s| JavaOperator::ServerName.new(s) }
    end

    def balancerSwitch(on, _synchronous = true)
      @command.balance_switch(on)
    end
    alias setBalancerRunning balancerSwitch

    def balance(*)
      @command.balancer
    end

    def close
      nil
    end
  end
  Admin = HBaseAdmin

  # The Admin of another cluster than the session's: each call goes there.
  class PeerAdmin < Part
    def initialize(admin, hosts, root)
      @admin = admin
      @hosts = hosts
      @root = root
    end

    (HBaseAdmin.instance_methods(false) - [:initialize]).each do |name|
      define_method(name) { |*list| Clusters.visit(@hosts, @root) { @admin.__send__(name, *list) } }
    end
  end

  class SnapshotDescription < Part
    def initialize(s)
      @s = s
    end

    def getName
      @s[:name]
    end

    def getTableNameAsString
      @s[:table].to_s.sub(/\Adefault:/, '')
    end
    alias getTable getTableNameAsString

    def getCreationTime
      @s[:creation_time]
    end

    def toString
      "SnapshotDescription: name = #{getName}/table = #{getTableNameAsString}"
    end
    alias to_s toString
  end
end
