# SPDX-License-Identifier: Apache-2.0
# What HBase's client returns to scripts: Result, its cells, ResultScanner.

Shell.need('client_requests')

module JavaClient
  class Cell < Part
    PACKAGE = 'org.apache.hadoop.hbase'
    TYPES = { 4 => 'Put', 8 => 'Delete', 10 => 'DeleteFamilyVersion', 12 => 'DeleteColumn', 14 => 'DeleteFamily' }

    def self.java_name
      'org.apache.hadoop.hbase.KeyValue'
    end

    def initialize(cell)
      @cell = cell
    end

    # The array that a part lies in is the part itself.
    { Row: 0, Family: 1, Qualifier: 2, Value: 5 }.each do |part, at|
      ["get#{part}", "get#{part}Array"].each { |n| define_method(n.to_sym) { @cell[at] } }
      define_method("get#{part}Length".to_sym) { @cell[at].length }
      define_method("get#{part}Offset".to_sym) { 0 }
    end

    def getTimestamp
      @cell[3]
    end

    def getTypeByte
      @cell[4]
    end

    def getKeyString
      "#{Bytes.toStringBinary(@cell[0])}/#{Bytes.toStringBinary(@cell[1])}:#{Bytes.toStringBinary(@cell[2])}/#{@cell[3]}/#{TYPES[@cell[4]]}"
    end

    def toString
      "#{getKeyString}/vlen=#{@cell[5].length}/seqid=0"
    end
    alias to_s toString

    def ==(other)
      other.is_a?(Cell) && other.toString == toString
    end
  end

  # Static methods on cells.
  class CellUtil < Part
    PACKAGE = 'org.apache.hadoop.hbase'
    %w[Row Family Qualifier Value].each do |part|
      define_singleton_method("clone#{part}".to_sym) { |cell| cell.__send__("get#{part}".to_sym) }
      define_singleton_method("matching#{part}".to_sym) { |cell, bytes| cell.__send__("get#{part}".to_sym) == bytes }
    end

    def self.matchingColumn(cell, family, qualifier)
      cell.getFamily == family && cell.getQualifier == qualifier
    end

    def self.toString(cell, _verbose = false)
      cell.toString
    end

    def self.getCellKeyAsString(cell)
      cell.getKeyString
    end
  end

  class Result < Part
    # `exists` is of a get of existence only.
    def initialize(cells, exists = nil)
      @cells = cells
      @exists = exists
    end

    def getRow
      @cells.empty? ? nil : @cells[0][0]
    end

    def isEmpty
      @cells.empty?
    end
    alias empty? isEmpty

    def size
      @cells.length
    end

    def rawCells
      @cells.map { |c| Cell.new(c) }
    end
    alias raw rawCells

    # nil without cells, as in Java.
    def listCells
      @cells.empty? ? nil : rawCells
    end
    alias list listCells

    def value
      @cells.empty? ? nil : @cells[0][5]
    end

    def columns(family, qualifier)
      @cells.select { |c| c[1] == family && c[2] == qualifier.to_s }
    end

    def getValue(family, qualifier)
      found = columns(family, qualifier)[0]
      found.nil? ? nil : found[5]
    end

    def getColumnCells(family, qualifier)
      columns(family, qualifier).map { |c| Cell.new(c) }
    end
    alias getColumn getColumnCells

    def getColumnLatestCell(family, qualifier)
      getColumnCells(family, qualifier)[0]
    end
    alias getColumnLatest getColumnLatestCell

    def containsColumn(family, qualifier)
      !columns(family, qualifier).empty?
    end

    def containsNonEmptyColumn(family, qualifier)
      !getValue(family, qualifier).to_s.empty?
    end

    def containsEmptyColumn(family, qualifier)
      getValue(family, qualifier) == ''
    end

    # Newest values by qualifier.
    def getFamilyMap(family)
      @cells.select { |c| c[1] == family }.each_with_object({}) { |c, h| h[c[2]] = c[5] unless h.key?(c[2]) }
    end

    def getNoVersionMap
      @cells.map { |c| c[1] }.uniq.each_with_object({}) { |f, h| h[f] = getFamilyMap(f) }
    end

    def getMap
      map = {}
      @cells.each do |c|
        family = (map[c[1]] ||= {})
        times = (family[c[2]] ||= {})
        times[c[3]] = c[5]
      end
      map
    end

    def getExists
      @exists
    end

    def toString
      @cells.empty? ? 'keyvalues=NONE' : "keyvalues={#{rawCells.map { |c| c.toString }.join(', ')}}"
    end
    alias to_s toString
  end

  # One scan, as far as it was read; `break` leaves it open, as in Java.
  class ResultScanner < Part
    include Enumerable

    def initialize(table, scan)
      @table = table
      @options = scan.options.dup
      @message = scan.message
      @ahead = []
    end

    def each
      while (r = self.next)
        yield r
      end
      self
    end

    # One row, nil at the end; with a number, up to so many.
    def next(count = nil)
      return (0...count).map { self.next }.compact unless count.nil?
      @ahead.empty? ? fetch : @ahead.shift
    end

    def fetch
      return nil if @ended
      @scanner ||= @table.open_scan(@options, @message)
      cells = @table.next_row(@scanner)
      cells = @table.next_row(@scanner) until cells.nil? || !cells.empty?
      return Result.new(cells) unless cells.nil?
      close
    end

    def iterator
      self
    end

    def hasNext
      r = @ahead.empty? ? fetch : nil
      @ahead << r unless r.nil?
      !@ahead.empty?
    end

    def close
      @scanner.close unless @scanner.nil?
      @ahead = []
      @ended = true
      nil
    end
  end
end
