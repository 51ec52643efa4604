# SPDX-License-Identifier: Apache-2.0
# HBase's classes that operators' scripts use beside the client: server names, the cluster's state, regions of hbase:meta, the znodes of
# the master and of draining servers, log levels. The servers are asked by RPC; ZooKeeper's znodes that say the same are not read.

Shell.need('client')
Shell.need('values')

module JavaOperator
  # The base of these classes: the name of a class that an error names.
  class Part < JavaClient::Part
    PACKAGE = 'org.apache.hadoop.hbase'
  end

  class ServerName < Part
    include Comparable

    def self.valueOf(name, port = nil, start = nil)
      new(port.nil? ? Names.server_of(name) : { host_name: name, port: port, start_code: start })
    end

    def initialize(name)
      @name = name
    end

    def getHostname
      @name[:host_name]
    end

    def getPort
      @name[:port]
    end

    def getStartcode
      @name[:start_code]
    end
    alias getStartCode getStartcode

    def getServerName
      Names.server(@name)
    end
    alias toString getServerName
    alias to_s getServerName

    def getHostAndPort
      "#{getHostname}:#{getPort}"
    end
    alias getAddress getHostAndPort

    def <=>(other)
      other.is_a?(ServerName) ? toString <=> other.toString : nil
    end

    def hash
      toString.hash
    end

    def eql?(other)
      (self <=> other) == 0
    end
  end

  # The answer of Admin.getClusterStatus and getClusterMetrics.
  class ClusterStatus < Part
    def initialize(status)
      @status = status
    end

    def names_of(list)
      list.map { |s| ServerName.new(s) }
    end

    def getServers
      names_of(@status[:live_servers].map { |l| l[:server] })
    end
    alias getServersName getServers

    def getServersSize
      @status[:live_servers].length
    end

    def getDeadServerNames
      names_of(@status[:dead_servers])
    end

    def getDeadServers
      @status[:dead_servers].length
    end
    alias getDeadServersSize getDeadServers

    def getMaster
      ServerName.new(@status[:master])
    end
    alias getMasterName getMaster

    def getBackupMasters
      names_of(@status[:backup_masters])
    end
    alias getBackupMasterNames getBackupMasters

    def loads
      @status[:live_servers].map { |l| l[:server_load] }
    end

    def getRegionsCount
      loads.inject(0) { |n, l| n + l[:region_loads].length }
    end
    alias getRegionCount getRegionsCount

    def getRequestsCount
      loads.inject(0) { |n, l| n + l[:number_of_requests].to_i }
    end
    alias getRequestCount getRequestsCount

    def getAverageLoad
      getServersSize == 0 ? 0.0 : getRegionsCount.to_f / getServersSize
    end

    def getHBaseVersion
      @status[:hbase_version][:version]
    end

    def getClusterId
      @status[:cluster_id][:cluster_id]
    end
  end

  class RegionInfo < Part
    include RegionParts

    def initialize(info)
      @region = Region.new(Region.name(info), info, '', nil, nil)
    end

    alias toString getRegionNameAsString
    alias to_s toString

    def getTable
      JavaTableName.valueOf(Names.text(@region.info[:table_name]))
    end

    def isOffline
      @region.info[:offline] == true
    end

    def isSplit
      @region.info[:split] == true
    end
    alias isSplitParent isSplit
  end
  HRegionInfo = RegionInfo

  # Rows of hbase:meta.
  class MetaTableAccessor < Part
    def self.getHRegionInfo(result)
      info = Region.parse_info(result.getValue('info', 'regioninfo'))
      info.nil? ? nil : RegionInfo.new(info)
    end

    def self.getRegionInfo(result)
      getHRegionInfo(result)
    end

    def self.getTableRegions(_connection, table)
      Meta.regions(JavaClient.name_of(table)).map { |r| RegionInfo.new(r.info) }
    end

    def self.allTableRegions(connection, table)
      getTableRegions(connection, table)
    end
  end

  # A connection to ZooKeeper of which only these two znodes are used.
  class ZKWatcher < Part
    PACKAGE = 'org.apache.hadoop.hbase.zookeeper'

    def initialize(configuration = nil, *)
      @configuration = configuration
      JavaClient.check_cluster(configuration)
    end

    def getZNodePaths
      ZNodePaths.new(@configuration)
    end
    alias getZnodePaths getZNodePaths

    def close
      nil
    end
  end
  ZooKeeperWatcher = ZKWatcher

  class ZNodePaths < Part
    PACKAGE = 'org.apache.hadoop.hbase.zookeeper'

    def self.joinZNode(parent, name)
      "#{parent}/#{name}"
    end

    def initialize(configuration)
      @root = (configuration || JavaClient::JavaConfiguration.new).get('zookeeper.znode.parent')
    end

    def drainingZNode
      ZNodePaths.joinZNode(@root, 'draining')
    end
    alias getDrainingZNode drainingZNode

    def masterAddressZNode
      ZNodePaths.joinZNode(@root, 'master')
    end
  end

  # HBASE: a child of the znode `draining` is a server that the master gives no regions; DecommissionRegionServers makes it.
  class ZKUtil < Part
    PACKAGE = 'org.apache.hadoop.hbase.zookeeper'

    def self.draining_server(watcher, node)
      parent, _, server = node.rpartition('/')
      return Names.server_of(server) if parent == watcher.getZNodePaths.drainingZNode
      raise ArgumentError, "the shell writes no znode but those of draining servers: #{node}"
    end

    def self.createAndFailSilent(watcher, node)
      Master.call('DecommissionRegionServers', { server_name: [draining_server(watcher, node)], offload: false })
      nil
    end

    def self.deleteNodeFailSilent(watcher, node)
      Master.call('RecommissionRegionServer', { server_name: draining_server(watcher, node), region: [] })
      nil
    end

    def self.listChildrenNoWatch(watcher, node)
      unless node == watcher.getZNodePaths.drainingZNode
        raise ArgumentError, "the shell lists no znode but that of draining servers: #{node}"
      end
      Master.call('ListDecommissionedRegionServers')[:server_name].map { |s| Names.server(s) }
    end

    def self.joinZNode(parent, name)
      ZNodePaths.joinZNode(parent, name)
    end
  end

  class MasterAddressTracker < Part
    PACKAGE = 'org.apache.hadoop.hbase.zookeeper'

    def self.getMasterAddress(_watcher)
      ServerName.new(Master.status(:MASTER)[:master])
    end
  end

  # The shell logs nothing: a level is taken and changes nothing.
  class Log4jUtils < Part
    PACKAGE = 'org.apache.hadoop.hbase.logging'

    def self.setAllLevels(_logger, _level)
      nil
    end

    def self.setLogLevel(_logger, _level)
      nil
    end
  end

  Level = JavaEnum.of('org.apache.log4j.Level', %w[ALL TRACE DEBUG INFO WARN ERROR FATAL OFF])

  class Logger < Part
    PACKAGE = 'org.apache.log4j'

    def self.getLogger(name)
      new(name)
    end

    def self.getRootLogger
      new('')
    end

    def initialize(name)
      @name = name.to_s
    end

    def getName
      @name
    end

    def setLevel(_level)
      nil
    end

    # Messages of a script go to standard error.
    %w[info warn error fatal].each do |level|
      define_method(level.to_sym) { |text, *| $stderr.puts("#{level.upcase} #{@name}: #{text}") }
    end

    def debug(*)
      nil
    end
    alias trace debug
  end

  class LoggerFactory < Part
    PACKAGE = 'org.slf4j'

    def self.getLogger(name)
      Logger.new(name)
    end
  end
  LogManager = Logger
end

Shell.need('loads')
