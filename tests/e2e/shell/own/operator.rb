# What operators' scripts take of HBase beside its client, as those of HBase's bin folder do.
java_import org.apache.hadoop.hbase.HBaseConfiguration
java_import org.apache.hadoop.hbase.HConstants
java_import org.apache.hadoop.hbase.MasterNotRunningException
java_import org.apache.hadoop.hbase.ServerName
java_import org.apache.hadoop.hbase.TableName
java_import org.apache.hadoop.hbase.TableNotFoundException
java_import org.apache.hadoop.hbase.client.ConnectionFactory
java_import org.apache.hadoop.hbase.zookeeper.ZKWatcher
java_import org.apache.hadoop.hbase.zookeeper.ZNodePaths
java_import org.apache.hadoop.hbase.zookeeper.MasterAddressTracker
org.apache.hadoop.hbase.logging.Log4jUtils.setAllLevels('org.apache.zookeeper', 'ERROR')
conf = HBaseConfiguration.create; puts conf.get(HConstants::ZOOKEEPER_ZNODE_PARENT)
puts HConstants::ZOOKEEPER_QUORUM, HConstants::HBASE_DIR, HConstants::META_ROW_DELIMITER.chr
watcher = ZKWatcher.new(conf, 'operator', nil); puts watcher.getZNodePaths.drainingZNode
puts ZNodePaths.joinZNode('/a', 'b')
puts MasterAddressTracker.getMasterAddress(watcher).getHostname
watcher.close
admin = ConnectionFactory.createConnection(conf).getAdmin; puts admin.getClusterStatus.getServers.size
create 'a', 'f', SPLITS => ['m']
puts admin.getRegions(TableName.valueOf('a')).map { |i| i.getStartKey.length }.inspect
begin
  admin.getDescriptor(TableName.valueOf('none'))
rescue MasterNotRunningException
  puts 'no master'
rescue TableNotFoundException => e
  puts "not found: #{e.getMessage}"
end
begin
  admin.createTable(admin.getDescriptor(TableName.valueOf('a')))
rescue org.apache.hadoop.hbase.TableExistsException => e
  puts "exists: #{e.getMessage}"
end
begin
  admin.disableTable(TableName.valueOf('none'))
rescue java.io.IOException => e
  puts 'an IOException'
end
begin
  java.lang.Integer.parseInt('x')
rescue java.lang.NumberFormatException => e
  puts e.message
end
begin
  java.lang.Integer.parseInt('x')
rescue java.io.IOException
  puts 'no IOException'
rescue java.lang.RuntimeException => e
  puts e.message
end
begin
  raise java.lang.IllegalStateException.new('own')
rescue java.lang.IllegalStateException => e
  puts e.message
end
begin; java.lang.Integer.parseInt('2147483648'); rescue java.lang.NumberFormatException => e; puts e.message; end
puts java.lang.Long.parseLong('2147483648'), java.lang.Integer.parseInt('-7f', 16)
begin; java.lang.Long.parseLong('9223372036854775808'); rescue java.lang.NumberFormatException => e; puts e.message; end
s = ServerName.valueOf('host,16020,1500000000000'); puts s.getHostname, s.getPort, s.getStartcode, s.to_s, s.getServerName
puts java.lang.String.new('abc').startsWith('ab'), java.lang.String.new('abc').indexOf('c'), java.lang.String.new('abc').toUpperCase
require 'optparse'
words = ['-t', 'one', '--count=3', 'rest', '-v', '--no-x', '--', '-y']; seen = []
parser = OptionParser.new do |o|
  o.banner = 'Usage: it [options]'
  o.separator 'Options:'
  o.on('-t', '--table NAME', 'A table') { |v| seen << v }
  o.on('-c', '--count N', Integer, 'How many', 'of them') { |v| seen << v }
  o.on('-v', '--verbose', 'Says more') { |v| seen << v }
  o.on('--[no-]x', 'Or not') { |v| seen << v }
  o.on('-l', '--list [A,B]', Array, 'A list, if there is one') { |v| seen << v }
end; nil
parser.parse!(words); p words, seen
puts parser
seen = []; parser.parse!(['-vtone', '-l', '--list=a,b', '--tab', 'z']); p seen
begin; parser.parse!(['--bad']); rescue OptionParser::InvalidOption => e; puts e.message; end
begin; parser.parse!(['-t']); rescue OptionParser::MissingArgument => e; puts e.message; end
begin; parser.parse!(['-c', 'x']); rescue OptionParser::InvalidArgument => e; puts e.message; end
exit
