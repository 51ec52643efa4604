# SPDX-License-Identifier: Apache-2.0
# Logs of slow calls and of the balancer, procedures and locks, and the JSON in which they are shown.

class Command
  # --- slow log, balancer's log ---

  LOGS = 'org.apache.hadoop.hbase.shaded.protobuf.generated.'

  def log_entries(service, target, request, fields)
    message = { log_class_name: "#{LOGS}#{request}", log_message: Wire.encode(request.split('$')[-1], fields) }
    bytes = Wire.encode('LogRequest', message)
    answer = target.nil? ? Wire.call(nil, 0, service, 'GetLogEntries', bytes) : Wire.call(target[:host_name], target[:port], service, 'GetLogEntries', bytes)
    Wire.decode('LogEntry', answer)
  end

  def log_filter(args)
    fields = { region_name: args['REGION_NAME'], table_name: args['TABLE_NAME'], client_address: args['CLIENT_IP'], user_name: args['USER'], limit: args['LIMIT'] || 10 }
    op = args['FILTER_BY_OP']
    unless op.nil?
      raise ArgumentError, 'FILTER_BY_OP should be either OR / AND' unless %w[OR AND].include?(op)
      fields[:filter_by_operator] = :AND if op == 'AND'
    end
    fields
  end

  def slow_calls(server_names, args, type)
    raise 'Filter parameters are not Hash' unless args.is_a?(Hash)
    unless server_names.is_a?(Array) || server_names.is_a?(String)
      raise ArgumentError, "#{server_names.class} of #{server_names.inspect} is not of Array/String type"
    end
    servers = server_names == '*' ? Servers.live : Servers.named([server_names].flatten, false)
    servers.map do |sn|
      entry = log_entries('AdminService', sn, 'AdminProtos$SlowLogResponseRequest', log_filter(args).merge(log_type: type))
      Wire.decode('SlowLogResponses', entry[:log_message])[:slow_log_payloads]
    end.flatten
  end

  def get_slowlog_responses(server_names, args = {})
    list = slow_calls(server_names, args, :SLOW_LOG)
    puts 'Retrieved SlowLog Responses from RegionServers'
    list.each { |l| puts slow_text(l) }
    nil
  end

  def get_largelog_responses(server_names, args = {})
    list = slow_calls(server_names, args, :LARGE_LOG)
    puts 'Retrieved LargeLog Responses from RegionServers'
    list.each { |l| puts slow_text(l) }
    nil
  end

  def slow_text(l)
    pairs = [['startTime', l[:start_time]], ['processingTime', l[:processing_time]], ['queueTime', l[:queue_time]],
             ['responseSize', l[:response_size]], ['blockBytesScanned', l[:block_bytes_scanned].to_i],
             ['fsReadTime', l[:fs_read_time].to_i], ['multiGetsCount', l[:multi_gets]],
             ['multiMutationsCount', l[:multi_mutations]], ['multiServiceCalls', l[:multi_service_calls]],
             ['clientAddress', l[:client_address]], ['serverClass', l[:server_class]], ['methodName', l[:method_name]],
             ['callDetails', l[:call_details]], ['param', l[:param]], ['userName', l[:user_name]],
             ['regionName', l[:region_name]]]
    pairs = pairs.reject { |k, v| v.nil? || v == '' || (%w[multiGetsCount multiMutationsCount multiServiceCalls].include?(k) && v == 0) }
    "{\n" + pairs.map { |k, v| "  #{Json.text(k)}: #{Json.text(v)}" }.join(",\n") + "\n}"
  end

  def clear_slowlog_responses(server_names = nil)
    unless server_names.nil? || server_names.is_a?(Array) || server_names.is_a?(String)
      raise ArgumentError, "#{server_names.class} of #{server_names.inspect} is not of correct type"
    end
    list = server_names.nil? ? Servers.live : Servers.named([server_names].flatten, false)
    done = list.select do |sn|
      Wire.decode('ClearSlowLogResponses', Wire.call(sn[:host_name], sn[:port], 'AdminService', 'ClearSlowLogsResponses', ''))[:is_cleaned]
    end
    puts "Cleared Slowlog responses from #{done.length}/#{list.length} RegionServers"
  end

  def get_balancer_decisions(args = {})
    raise 'Filter parameters are not Hash' unless args.is_a?(Hash)
    entry = log_entries('MasterService', nil, 'MasterProtos$BalancerDecisionsRequest', { limit: args['LIMIT'] || 250 })
    puts 'Retrieved BalancerDecision Responses'
    Wire.decode('BalancerDecisionsResponse', entry[:log_message])[:balancer_decision].each { |d| puts Json.pretty(d) }
    nil
  end

  def get_balancer_rejections(args = {})
    raise 'Filter parameters are not Hash' unless args.is_a?(Hash)
    entry = log_entries('MasterService', nil, 'MasterProtos$BalancerRejectionsRequest', { limit: args['LIMIT'] || 250 })
    puts 'Retrieved BalancerRejection Responses'
    Wire.decode('BalancerRejectionsResponse', entry[:log_message])[:balancer_rejection].each { |d| puts Json.pretty(d) }
    nil
  end

  # --- procedures and locks ---

  def list_procedures
    out.header(%w[PID Name State Submitted Last_Update Parameters])
    list = Master.call('GetProcedures')[:procedure]
    list.each do |pr|
      out.row([pr[:proc_id], pr[:class_name], pr[:state], Time.at(pr[:submitted_time] / 1000).to_s, Time.at(pr[:last_update] / 1000).to_s, parameters(pr)])
    end
    out.footer(list.length)
  end

  # HBase shows the state messages as a Ruby value of their JSON.
  def parameters(pr)
    list = pr[:state_message].map { |m| state_message(m) }
    "[#{list.map { |v| Json.ruby(v) }.join(', ')}]"
  end

  def state_message(any)
    name = any[:type_url].to_s.split('/')[-1].to_s.split('.')[-1]
    Json.of_message(Wire.decode(name, any[:value].to_s, true))
  rescue ArgumentError
    {}
  end

  def list_locks
    list = Master.call('GetLocks')[:lock]
    list.each do |l|
      out.line("#{l[:resource_type]}(#{l[:resource_name]})")
      puts
      if l[:lock_type] == :EXCLUSIVE
        out.line("Lock type: EXCLUSIVE, procedure: #{Json.ruby(Json.of_message(l[:exclusive_lock_owner_procedure] || {}))}")
      else
        out.line("Lock type: SHARED, count: #{l[:shared_lock_count]}")
      end
      puts
      unless l[:waitingProcedures].empty?
        out.header(['Waiting procedures'])
        l[:waitingProcedures].each { |w| out.row([Json.ruby(Json.of_message(w))]) }
        out.footer(l[:waitingProcedures].length)
      end
      out.line('')
      puts
    end
    list
  end
end

Shell.need('json')
Shell.need('tools')
