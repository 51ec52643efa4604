# SPDX-License-Identifier: Apache-2.0
# The cluster's state, the version, the user's name.

class Command
  # The build of HBase that the server is compatible with; in the text of the official shell of that build.
  def version
    puts '2.6.1, r7ed50b4dd742269a78875fb32112215f831284ff, Wed Oct  9 11:34:53 UTC 2024'
  end

  def whoami
    puts "#{Shell.user} (auth:SIMPLE)"
    groups = Shell.groups
    puts "    groups: #{groups.join(', ')}" unless groups.empty?
    nil
  end

  def table_help
    Shell.help('table_help')
  end

  def processlist(*args)
    filter = %w[all general handler rpc operation].include?(args[0]) ? args.shift : 'general'
    Shell.need('tasks')
    Tasks.show(filter, Servers.named(args, true))
  end

  def status(format = 'summary', type = 'both')
    s = Master.status_packed
    case format
    when 'detailed'
      status_detailed(s)
      return JavaList.new('JavaUtil::Collections::UnmodifiableRandomAccessList', [])
    when 'replication', 'tasks'
      format == 'tasks' ? status_tasks(s) : status_replication(s, type)
      return JavaList.new('JavaUtil::Collections::UnmodifiableSet', s[:live_servers].map { JavaValue.new('OrgApacheHadoopHbase::ServerName') })
    when 'simple' then status_simple(s)
    else
      live = s[:live_servers]
      regions = live.inject(0) { |n, l| n + l[:server_load][:region_loads].length }
      average = live.empty? ? 0.0 : regions.to_f / live.length
      puts "1 active master, #{s[:backup_masters].length} backup masters, #{live.length} servers, " \
           "#{s[:dead_servers].length} dead, #{format('%.4f', average)} average load"
    end
    nil
  end

  def format(*list)
    Kernel.format(*list)
  end

  def server_text(sn)
    "#{sn[:host_name]}:#{sn[:port]} #{sn[:start_code]}"
  end

  def status_simple(s)
    puts "active master:  #{server_text(s[:master])}"
    puts "#{s[:backup_masters].length} backup masters"
    s[:backup_masters].each { |b| puts "    #{server_text(b)}" }
    puts "#{s[:live_servers].length} live servers"
    load = regions = 0
    s[:live_servers].each do |l|
      puts "    #{server_text(l[:server])}"
      puts "        #{load_text(l[:server_load])}"
      load += l[:server_load][:number_of_requests].to_i
      regions += l[:server_load][:region_loads].length
    end
    puts "#{s[:dead_servers].length} dead servers"
    s[:dead_servers].each { |d| puts "    #{Names.server(d)}" }
    puts "Aggregate load: #{load}, regions: #{regions}"
  end

  def status_detailed(s)
    puts "version #{s[:hbase_version][:version]}"
    puts "#{s[:regions_in_transition].length} regionsInTransition"
    s[:regions_in_transition].each do |r|
      i = r[:region_state][:region_info]
      i[:start_key] ||= ''
      puts "    #{Region.name(i)} state=#{r[:region_state][:state]}, ts=#{r[:region_state][:stamp]}, server=null"
    end
    puts "active master:  #{server_text(s[:master])}"
    s[:master_tasks].each { |t| puts "    #{task_text(t)}" }
    puts "#{s[:backup_masters].length} backup masters"
    s[:backup_masters].each { |b| puts "    #{server_text(b)}" }
    puts "master coprocessors: [#{s[:master_coprocessors].map { |c| c[:name] }.join(', ')}]"
    puts "#{s[:live_servers].length} live servers"
    s[:live_servers].each do |l|
      puts "    #{server_text(l[:server])}"
      puts "        #{load_text(l[:server_load])}"
      named_loads(l[:server_load]).sort { |a, b| a[0] <=> b[0] }.each do |name, bytes|
        puts "        \"#{Bytes.toStringBinary(name)}\""
        puts "            #{region_text(Wire.decode('RegionLoad', bytes))}"
      end
      l[:server_load][:tasks].each { |t| puts "        #{task_text(t)}" }
    end
    puts "#{s[:dead_servers].length} dead servers"
    s[:dead_servers].each { |d| puts "    #{Names.server(d)}" }
  end

  def task_text(t)
    "#{t[:description]}: status=#{t[:status]}, state=#{t[:state]}, startTime=#{t[:startTime]}, completionTime=#{t[:completionTime]}"
  end

  def running(tasks, inset)
    list = tasks.select { |t| t[:state] == :RUNNING }
    list.each { |t| puts "#{inset}#{task_text(t)}" }
    puts "#{inset}no active tasks" if list.empty?
  end

  def status_tasks(s)
    puts "active master:  #{server_text(s[:master])}"
    running(s[:master_tasks], '    ')
    puts "#{s[:live_servers].length} live servers"
    s[:live_servers].each do |l|
      puts "    #{server_text(l[:server])}"
      running(l[:server_load][:tasks], '        ')
    end
  end

  # [name, load as bytes] of each region; one load at a time is decoded.
  def named_loads(l)
    l[:region_loads].map { |bytes| [Wire.decode('RegionLoad', bytes)[:region_specifier][:value], bytes] }
  end

  # The sums of the regions' numbers, by field.
  def sums(l)
    l[:region_loads].each_with_object(Hash.new(0)) do |bytes, total|
      Wire.decode('RegionLoad', bytes).each { |field, n| total[field] += n if n.is_a?(Integer) }
    end
  end

  def progress(total, done)
    total > 0 ? Shell.java_float(done.to_f / total) : 'NaN'
  end

  def load_text(l)
    r = sums(l)
    total = r[:total_compacting_KVs]
    done = r[:current_compacted_KVs]
    text = "requestsPerSecond=#{Shell.java_float(l[:number_of_requests].to_f)}, numberOfOnlineRegions=#{l[:region_loads].length}, " \
           "usedHeapMB=#{l[:used_heap_MB].to_i}, maxHeapMB=#{l[:max_heap_MB].to_i}, numberOfStores=#{r[:stores]}, " \
           "numberOfStorefiles=#{r[:storefiles]}, storefileUncompressedSizeMB=#{r[:store_uncompressed_size_MB]}, " \
           "storefileSizeMB=#{r[:storefile_size_MB]}"
    raw = r[:store_uncompressed_size_MB]
    text += ", compressionRatio=#{format('%.4f', r[:storefile_size_MB].to_f / raw)}" if raw != 0
    text + ", memstoreSizeMB=#{r[:mem_store_size_MB]}, storefileIndexSizeKB=#{r[:storefile_index_size_KB]}, " \
           "readRequestsCount=#{r[:read_requests_count]}, filteredReadRequestsCount=#{r[:filtered_read_requests_count]}, " \
           "writeRequestsCount=#{r[:write_requests_count]}, rootIndexSizeKB=#{r[:root_index_size_KB]}, " \
           "totalStaticIndexSizeKB=#{r[:total_static_index_size_KB]}, totalStaticBloomSizeKB=#{r[:total_static_bloom_size_KB]}, " \
           "totalCompactingKVs=#{total}, currentCompactedKVs=#{done}, compactionProgressPct=#{progress(total, done)}, " \
           "coprocessors=[#{l[:coprocessors].map { |c| c[:name] }.uniq.sort.join(', ')}]"
  end

  def region_text(r)
    raw = r[:store_uncompressed_size_MB].to_i
    text = "numberOfStores=#{r[:stores].to_i}, numberOfStorefiles=#{r[:storefiles].to_i}, storeRefCount=#{r[:store_ref_count].to_i}, " \
           "storefileUncompressedSizeMB=#{raw}, lastMajorCompactionTimestamp=#{r[:last_major_compaction_ts].to_i}, " \
           "storefileSizeMB=#{r[:storefile_size_MB].to_i}"
    text += ", compressionRatio=#{format('%.4f', r[:storefile_size_MB].to_f / raw)}" if raw != 0
    total = r[:total_compacting_KVs].to_i
    done = r[:current_compacted_KVs].to_i
    text + ", memstoreSizeMB=#{r[:mem_store_size_MB].to_i}, readRequestsCount=#{r[:read_requests_count].to_i}, " \
           "writeRequestsCount=#{r[:write_requests_count].to_i}, rootIndexSizeKB=#{r[:root_index_size_KB].to_i}, " \
           "totalStaticIndexSizeKB=#{r[:total_static_index_size_KB].to_i}, totalStaticBloomSizeKB=#{r[:total_static_bloom_size_KB].to_i}, " \
           "totalCompactingKVs=#{total}, currentCompactedKVs=#{done}, compactionProgressPct=#{progress(total, done)}, " \
           "completeSequenceId=#{r[:complete_sequence_id].to_i}, dataLocality=#{Shell.java_float(r[:data_locality].to_f)}"
  end

  def status_replication(s, type)
    puts "version #{s[:hbase_version][:version]}"
    puts "#{s[:live_servers].length} live servers"
    s[:live_servers].each do |l|
      sink = l[:server_load][:replLoadSink]
      next if sink.nil?
      puts "    #{server_text(l[:server])}"
      puts source_text(l[:server_load][:replLoadSource]) unless type.to_s.downcase == 'sink'
      puts sink_text(sink) unless type.to_s.downcase == 'source'
    end
  end

  def sink_text(k)
    started = k[:timestampStarted].to_i
    text = "      SINK: TimeStampStarted=#{started}"
    return text + ', Waiting for OPs... ' if k[:timeStampsOfLastAppliedOp].to_i == started
    text + ", AgeOfLastAppliedOp=#{k[:ageOfLastAppliedOp]}, TimeStampsOfLastAppliedOp=#{java_date(k[:timeStampsOfLastAppliedOp])}"
  end

  def source_text(sources)
    text = '       SOURCE:'
    sources.group_by { |x| x[:peerID] }.each do |peer, list|
      text += " PeerID=#{peer}"
      list.each { |x| text += queue_text(x) }
    end
    text
  end

  def queue_text(x)
    text = "\n         #{x[:recovered] ? 'Recovered' : 'Normal'} Queue: #{x[:queueId]}"
    return text + "\n           No Reader/Shipper threads runnning yet." unless x[:running]
    text += if x[:timeStampOfLastShippedOp].to_i == 0
              "\n           No Ops shipped since last restart"
            else
              "\n           AgeOfLastShippedOp=#{x[:ageOfLastShippedOp]}, TimeStampOfLastShippedOp=#{java_date(x[:timeStampOfLastShippedOp])}"
            end
    text += ", SizeOfLogQueue=#{x[:sizeOfLogQueue]}, EditsReadFromLogQueue=#{x[:editsRead].to_i}, OpsShippedToTarget=#{x[:oPsShipped].to_i}"
    text += x[:editsSinceRestart] ? ", TimeStampOfNextToReplicate=#{java_date(x[:timeStampOfNextToReplicate])}" : ', No edits for this source since it started'
    text + ", Replication Lag=#{x[:replicationLag]}"
  end

  # java.util.Date.toString
  def java_date(ms)
    Shell.strftime('%a %b %d %H:%M:%S %Z %Y', ms.to_i / 1000, false)
  end
end
Shell.need('ddl')
