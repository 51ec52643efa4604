# SPDX-License-Identifier: Apache-2.0
# HBase's classes of the load of servers and regions, and of where regions are, as scripts of operators use them.

Shell.need('operator')

module JavaOperator
  # A number of a unit; units are powers of 1,024.
  class Size < Part
    Unit = JavaEnum.of('org.apache.hadoop.hbase.Size$Unit', %w[BYTE KILOBYTE MEGABYTE GIGABYTE TERABYTE PETABYTE])

    attr_reader :unit
    alias getUnit unit

    def initialize(number, unit)
      @number, @unit = number, unit
    end

    # In the size's own unit, if none is named.
    def get(unit = @unit)
      @number.to_f * 1024**(@unit.ordinal - unit.ordinal)
    end

    def getLongValue
      @number.to_i
    end

    def toString
      "#{get}#{@unit.name[0]}#{'B' unless @unit.ordinal == 0}"
    end
    alias to_s toString
  end

  # A region's load by the names of HBase 1 (RegionLoad) and 2 (RegionMetrics).
  class RegionLoad < Part
    # name => field of the message
    { Stores: :stores, StoreCount: :stores, Storefiles: :storefiles, StoreFileCount: :storefiles, StorefileSizeMB: :storefile_size_MB,
      StoreUncompressedSizeMB: :store_uncompressed_size_MB, MemStoreSizeMB: :mem_store_size_MB, StorefileIndexSizeKB: :storefile_index_size_KB,
      ReadRequestsCount: :read_requests_count, ReadRequestCount: :read_requests_count, WriteRequestsCount: :write_requests_count,
      WriteRequestCount: :write_requests_count, FilteredReadRequestCount: :filtered_read_requests_count,
      TotalCompactingKVs: :total_compacting_KVs, CurrentCompactedKVs: :current_compacted_KVs,
      LastMajorCompactionTs: :last_major_compaction_ts, LastMajorCompactionTimestamp: :last_major_compaction_ts }.each do |name, field|
      define_method("get#{name}".to_sym) { @load[field].to_i }
    end
    { StoreFileSize: :storefile_size_MB, UncompressedStoreFileSize: :store_uncompressed_size_MB, MemStoreSize: :mem_store_size_MB }.each do |name, field|
      define_method("get#{name}".to_sym) { Size.new(@load[field].to_i, Size::Unit::MEGABYTE) }
    end

    def initialize(load)
      @load = load
    end

    def getName
      @load[:region_specifier][:value]
    end
    alias getRegionName getName

    def getNameAsString
      Bytes.toStringBinary(getName)
    end

    def getRequestsCount
      getReadRequestsCount + getWriteRequestsCount
    end
    alias getRequestCount getRequestsCount

    def getDataLocality
      @load[:data_locality].to_f
    end
  end

  # A server's load by the names of HBase 1 (ServerLoad) and 2 (ServerMetrics).
  class ServerLoad < Part
    def initialize(server, load)
      @server = server
      @load = load
    end

    def getServerName
      ServerName.new(@server)
    end

    # By the region's name.
    def getRegionsLoad
      @load[:region_loads].each_with_object({}) { |r, all| all[r[:region_specifier][:value]] = RegionLoad.new(r) }
    end
    alias getRegionMetrics getRegionsLoad

    def getNumberOfRegions
      @load[:region_loads].length
    end
    alias getLoad getNumberOfRegions

    def getNumberOfRequests
      @load[:number_of_requests].to_i
    end
    alias getRequestCountPerSecond getNumberOfRequests

    def getTotalNumberOfRequests
      @load[:total_number_of_requests].to_i
    end
    alias getRequestCount getTotalNumberOfRequests

    def getUsedHeapMB
      @load[:used_heap_MB].to_i
    end

    def getMaxHeapMB
      @load[:max_heap_MB].to_i
    end

    def getUsedHeapSize
      Size.new(getUsedHeapMB, Size::Unit::MEGABYTE)
    end

    def getMaxHeapSize
      Size.new(getMaxHeapMB, Size::Unit::MEGABYTE)
    end
  end

  class ClusterStatus
    # By the server's name.
    def getLiveServerMetrics
      @status[:live_servers].each_with_object({}) { |l, all| all[ServerName.new(l[:server])] = ServerLoad.new(l[:server], l[:server_load]) }
    end

    # nil: the server does not live.
    def getLoad(server)
      found = @status[:live_servers].find { |l| Names.server(l[:server]) == server.toString }
      found.nil? ? nil : ServerLoad.new(found[:server], found[:server_load])
    end
  end

  # The regions of a table and their servers, as hbase:meta has them at each call.
  class RegionLocator < Part
    PACKAGE = 'org.apache.hadoop.hbase.client'

    def initialize(name)
      @name = name
    end

    def getName
      JavaTableName.valueOf(@name)
    end

    def getAllRegionLocations
      Meta.regions(@name).map { |r| RegionLocation.new(r) }
    end

    # reload: each call asks hbase:meta.
    def getRegionLocation(row, _reload = false)
      found = Meta.region_of_row(@name, row)
      raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', @name) if found.nil?
      RegionLocation.new(found)
    end

    def getStartKeys
      Meta.regions(@name).map { |r| r.info[:start_key] }
    end

    def getEndKeys
      Meta.regions(@name).map { |r| r.info[:end_key] }
    end

    # Java: a pair of arrays.
    def getStartEndKeys
      JavaPair.new(getStartKeys, getEndKeys)
    end

    def close
      nil
    end
  end
end
