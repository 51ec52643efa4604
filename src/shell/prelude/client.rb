# SPDX-License-Identifier: Apache-2.0
# HBase's client as scripts use it: ConnectionFactory, Connection, Table, Configuration. All connections are the session's; writes are
# sent at once, also those of a BufferedMutator. Requests, results and definitions have files of their own.

Shell.need('client_results')

module JavaClient
  # A java.util.List, or one.
  def self.each_of(one_or_many)
    one_or_many.is_a?(Array) ? one_or_many.each { |e| yield e } : yield(one_or_many)
  end

  def self.name_of(table)
    table.is_a?(String) ? table : table.to_s
  end

  class HTable < Part
    # HTable.new(conf, name), as before HBase 2.
    def initialize(conf_or_name, name = nil)
      JavaClient.check_cluster(conf_or_name) unless name.nil?
      @table = Hbase::Table.new(JavaClient.name_of(name.nil? ? conf_or_name : name))
    end

    def getName
      JavaTableName.valueOf(@table.name)
    end

    def getTableName
      @table.name
    end

    def put(list)
      JavaClient.each_of(list) { |p| p.send_to(@table) }
      nil
    end
    alias mutate put

    def delete(list)
      JavaClient.each_of(list) { |d| d.send_to(@table) }
      nil
    end

    def get(list)
      return list.map { |g| get(g) } if list.is_a?(Array)
      return Result.new([], exists(list)) if list.isCheckExistenceOnly
      Result.new(@table.checked { Rows.get(@table.name, list.row, list.message) })
    end

    def exists(list)
      return list.map { |g| exists(g) } if list.is_a?(Array)
      @table.checked { Rows.exists(@table.name, list.row, list.message(true)) }
    end
    alias existsAll exists

    # HBase: a Scan, a family, or a column.
    def getScanner(scan, qualifier = nil)
      unless scan.is_a?(Scan)
        family = scan
        scan = Scan.new
        qualifier.nil? ? scan.addFamily(family) : scan.addColumn(family, qualifier)
      end
      ResultScanner.new(self, scan)
    end

    def open_scan(options, message)
      @table.checked { Rows.open(@table.name, options, message) }
    end

    def next_row(scanner)
      @table.checked { scanner.next }
    end

    def increment(i)
      Result.new(i.send_to(@table))
    end
    alias append increment

    def incrementColumnValue(row, family, qualifier, amount, durability = nil)
      i = Increment.new(row).addColumn(family, qualifier, amount)
      i.setDurability(durability) unless durability.nil?
      Bytes.toLong(increment(i).value)
    end

    # The results in the order of the actions.
    def batch(actions, results = nil)
      list = actions.map { |a| a.is_a?(Get) ? get(a) : Result.new(a.send_to(@table) || []) }
      list.each_with_index { |r, i| results[i] = r } unless results.nil?
      list
    end

    def getDescriptor
      JavaClient::TableDescriptor.new(Descriptor.get(@table.name))
    end
    alias getTableDescriptor getDescriptor

    def getConfiguration
      JavaConfiguration.new
    end

    # Each write is sent at once.
    def flushCommits
      nil
    end
    alias flush flushCommits
    alias close flushCommits

    def setAutoFlush(*)
      nil
    end
    alias setWriteBufferSize setAutoFlush
    alias setAutoFlushTo setAutoFlush
  end
  Table = HTable
  BufferedMutator = HTable

  # Tables are those of the session's cluster. An Admin of another is possible: PeerAdmin.
  def self.check_cluster(conf)
    other = conf.is_a?(JavaConfiguration) ? conf.other_cluster : nil
    refuse(other) unless other.nil?
  end

  def self.refuse(other)
    raise ArgumentError, "the shell is connected to #{Wire.registry}; a script for #{other} runs in a shell of its own: rorqual shell --zk #{other}"
  end

  class Connection < Part
    # other: "HOST:PORT,…" of another cluster than the session's, and the parent of its znodes.
    def initialize(other = nil, root = nil)
      @other = other
      @root = root
    end

    def getTable(name, *)
      JavaClient.refuse(@other) unless @other.nil?
      HTable.new(JavaClient.name_of(name))
    end
    alias getBufferedMutator getTable

    def getAdmin
      admin = JavaClient::HBaseAdmin.new
      @other.nil? ? admin : JavaClient::PeerAdmin.new(admin, @other.split(','), @root)
    end

    def getRegionLocator(name)
      JavaClient.refuse(@other) unless @other.nil?
      Shell.need('operator')
      JavaOperator::RegionLocator.new(JavaClient.name_of(name))
    end

    def getConfiguration
      JavaConfiguration.new
    end

    def close
      @closed = true
      nil
    end

    def isClosed
      @closed == true
    end
    alias closed? isClosed

    def isAborted
      false
    end
  end

  class ConnectionFactory < Part
    def self.createConnection(conf = nil, *)
      other = conf.is_a?(JavaConfiguration) ? conf.other_cluster : nil
      other.nil? ? Connection.new : Connection.new(other, conf.get('zookeeper.znode.parent'))
    end
  end

  # org.apache.hadoop.conf.Configuration of a script: what it sets stays in it.
  class JavaConfiguration < ShellConfiguration
    include JavaNames

    def self.inspect
      'Java::OrgApacheHadoopConf::Configuration'
    end

    def initialize(*)
      @own = {}
    end

    def get(name, otherwise = nil)
      @own.key?(name) ? @own[name] : super
    end
    alias [] get

    def set(name, value)
      @own[name.to_s] = value.to_s
      nil
    end
    alias []= set
    alias setInt set
    alias setLong set
    alias setFloat set
    alias setDouble set
    alias setBoolean set

    def setIfUnset(name, value)
      set(name, value) if get(name).nil?
      nil
    end

    def getInt(name, otherwise)
      text = get(name)
      text.nil? ? otherwise : JavaInteger.parseInt(text.strip)
    end
    alias getLong getInt

    def getBoolean(name, otherwise)
      { 'true' => true, 'false' => false }.fetch(get(name).to_s.strip.downcase, otherwise)
    end

    def addResource(*)
      raise NameError, 'the shell reads no configuration files of scripts: --zk HOST:PORT names the cluster'
    end

    # "host:port,…" if the script names a cluster that is not the session's.
    def other_cluster
      quorum = @own['hbase.zookeeper.quorum']
      port = @own['hbase.zookeeper.property.clientPort']
      return nil if quorum.nil? && port.nil?
      here = Wire.registry.to_s.split(',')
      names = here.map { |a| Names.host_and_port(a)[0] }
      hosts = quorum.nil? ? names : quorum.split(',').map { |a| a.strip }
      wanted = hosts.map { |a| Names.with_port(a, port || '2181') }
      wanted.any? { |a| here.include?(a) } || (port.nil? && hosts.any? { |a| names.include?(Names.host_and_port(a)[0]) }) ? nil : wanted.join(',')
    end
  end

  class HBaseConfiguration < Part
    PACKAGE = 'org.apache.hadoop.hbase'

    def self.create(*)
      JavaConfiguration.new
    end

    def self.new(*)
      create
    end
  end

  Configuration = JavaConfiguration
  KeyValue = Cell
end

Shell.need('client_admin')
