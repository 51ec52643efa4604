# A tool of operators as HBase's bin folder has them, run by `rorqual shell --ruby`: VERB [ARGUMENTS].
require 'optparse'
include Java
java_import org.apache.hadoop.hbase.HBaseConfiguration
java_import org.apache.hadoop.hbase.HConstants
java_import org.apache.hadoop.hbase.MetaTableAccessor
java_import org.apache.hadoop.hbase.TableName
java_import org.apache.hadoop.hbase.client.ConnectionFactory
java_import org.apache.hadoop.hbase.client.Scan
java_import org.apache.hadoop.hbase.zookeeper.ZKUtil
java_import org.apache.hadoop.hbase.zookeeper.ZKWatcher
java_import org.apache.hadoop.hbase.zookeeper.ZNodePaths

org.apache.log4j.Logger.getLogger('org.apache.hadoop.hbase').setLevel(org.apache.log4j.Level::ERROR)

only = nil
parser = OptionParser.new do |o|
  o.banner = <<~TEXT
    Usage: tool VERB; it's short
  TEXT
  o.on('-t', '--table NAME') { |name| only = name }
end
parser.parse!

# Regions in hbase:meta, of one table or of all. `scan` is a variable here, not the command.
def regions(connection, only)
  scan = Scan.new
  scan.addColumn('info'.to_java_bytes, 'regioninfo'.to_java_bytes)
  rows = connection.getTable(TableName.valueOf('hbase:meta')).getScanner(scan).iterator
  count = 0
  while rows.hasNext
    info = MetaTableAccessor.getHRegionInfo(rows.next)
    next if info.isOffline || (only && info.getTable.getNameAsString != only)
    count += 1
  end
  count
end

def copy(source, target, name)
  target.createTable(source.getDescriptor(TableName.valueOf(name)))
  puts "#{name}: copied"
rescue org.apache.hadoop.hbase.TableNotFoundException
  puts "#{name}: none"
rescue org.apache.hadoop.hbase.TableExistsException
  puts "#{name}: exists"
end

def peer(key)
  quorum, port, root = key.split(':')
  conf = HBaseConfiguration.create
  conf.set(HConstants::ZOOKEEPER_QUORUM, quorum)
  conf.set('hbase.zookeeper.property.clientPort', port)
  conf.set(HConstants::ZOOKEEPER_ZNODE_PARENT, root)
  ConnectionFactory.createConnection(conf)
end

config = HBaseConfiguration.create
connection = ConnectionFactory.createConnection(config)
watcher = ZKWatcher.new(config, 'tool', nil)
draining = watcher.getZNodePaths.drainingZNode
verb = ARGV.shift
case verb
when 'regions'
  n = regions(connection, only)
  puts n
  exit n == 0 ? 4 : 0
when 'drain', 'undrain'
  connection.getAdmin.getClusterStatus.getServers.each do |server|
    node = ZNodePaths.joinZNode(draining, server.getServerName)
    verb == 'drain' ? ZKUtil.createAndFailSilent(watcher, node) : ZKUtil.deleteNodeFailSilent(watcher, node)
  end
when 'draining' then puts ZKUtil.listChildrenNoWatch(watcher, draining).length
when 'copy' then ARGV[1].split(',').each { |name| copy(connection.getAdmin, peer(ARGV[0]).getAdmin, name) }
when 'rows' then peer(ARGV[0]).getTable(TableName.valueOf('a'))
when 'stop' then ARGV.each { |host_port| connection.getAdmin.stopRegionServer(host_port) }
when 'abort' then abort 'aborted'
when 'fail' then connection.getAdmin.disableTable(TableName.valueOf('none'))
else
  warn parser
  exit 3
end
