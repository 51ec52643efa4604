# SPDX-License-Identifier: Apache-2.0
# Java objects that commands return, with the methods that scripts call.

# Objects that are Java objects in the official shell are printed in Java's form.
class JavaValue
  def initialize(name)
    @name = name
  end

  def inspect
    "#<Java::#{@name}:0x#{(object_id & 0xffffffff).to_s(16)}>"
  end
  alias to_s inspect
end

# A java.util.List that a command returns. Scripts call size, each and the methods of Enumerable.
class JavaList < JavaValue
  include Enumerable

  def initialize(name, items)
    super(name)
    @items = items
  end

  def each(&block)
    @items.each(&block)
    self
  end

  def length
    @items.length
  end
  alias size length

  def get(i)
    @items[i]
  end
  alias [] get

  def empty?
    @items.empty?
  end
  alias isEmpty empty?

  def inspect
    "#<Java::#{@name}: #{@items.inspect}>"
  end
  alias to_s inspect
end

# A java.util.HashMap that a command returns.
class JavaMap < Hash
  # The keys in the order of a Java HashMap to which they were added one by one. `room`: the number of its buckets at first.
  # The block returns a key's hashCode as an unsigned number; without a block, the keys are texts.
  def self.order(keys, room = 16)
    room *= 2 while keys.length > room * 3 / 4
    placed = keys.each_with_index.map do |key, i|
      hash = block_given? ? yield(key) : hash_of(key)
      [(hash ^ (hash >> 16)) & (room - 1), i, key]
    end
    placed.sort.map { |entry| entry[2] }
  end

  # String.hashCode as an unsigned number. REQUIRES: characters below U+10000.
  def self.hash_of(text)
    hash = 0
    text.each_char { |c| hash = (31 * hash + c.ord) & 0xffffffff }
    hash
  end

  def inspect
    "#<Java::JavaUtil::HashMap: #{super}>"
  end
end

# The result of locate_region, with the names of HBase's class and of JRuby.
class RegionLocation < JavaValue
  def initialize(region)
    super('OrgApacheHadoopHbase::HRegionLocation')
    @region = region
  end

  def getRegion
    RegionValue.new(@region)
  end
  alias getRegionInfo getRegion
  alias region getRegion

  def getServerName
    ServerValue.new(@region)
  end
  alias server_name getServerName

  def getHostname
    @region.host
  end
  alias hostname getHostname

  def getPort
    @region.port
  end
  alias port getPort

  def getHostnamePort
    @region.server
  end
end

# The parts of a region that its Java classes show; `@region` is a Region.
module RegionParts
  def getRegionName
    @region.name
  end

  def getRegionNameAsString
    @region.name_text
  end

  def getEncodedName
    @region.encoded
  end

  def getStartKey
    @region.info[:start_key]
  end

  def getEndKey
    @region.info[:end_key]
  end

  def getRegionId
    @region.info[:region_id]
  end

  def getReplicaId
    @region.info[:replica_id].to_i
  end
end

class RegionValue < JavaValue
  include RegionParts

  def initialize(region)
    super('OrgApacheHadoopHbaseClient::MutableRegionInfo')
    @region = region
  end
end

class ServerValue < JavaValue
  def initialize(region)
    super('OrgApacheHadoopHbase::ServerName')
    @region = region
  end

  def getServerName
    @region.server_name
  end
  alias toString getServerName
  alias to_s getServerName

  def getHostname
    @region.host
  end

  def getPort
    @region.port
  end

  def getStartcode
    @region.start_code
  end
end
