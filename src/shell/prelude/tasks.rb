# SPDX-License-Identifier: Apache-2.0
# processlist: the tasks of region servers, from their pages of tasks.

module Tasks
  # HBase 2.6.1 serves the tasks as /rs-status, later releases as /regionserver.jsp.
  PAGES = %w[/rs-status /regionserver.jsp]
  # Widths of host, start and state; other columns are at most as wide as their texts.
  WIDTHS = [15, 19, 8]
  DESCRIPTION_MAX = 32
  STATUS_MAX = 36
  SINCE = 27 # " (since N seconds ago)"

  class << self
    def show(filter, servers)
      list = servers.map { |sn| of_server(filter, sn) }.flatten
      puts "#{list.length} tasks as of: #{Time.now.strftime('%Y-%m-%d %H:%M:%S')}"
      return puts("No #{filter} tasks currently running.") if list.empty?
      table(list)
    end

    # The newest first, as HBase.
    def of_server(filter, sn)
      page_of(filter, sn).reverse.map { |t| t.merge('host' => sn[:host_name]) }
    end

    def page_of(filter, sn)
      port = port_of(sn)
      status = nil
      PAGES.each do |path|
        status, body = Shell.fetch(sn[:host_name], port, "#{path}?format=json&filter=#{filter}")
        next if status != '200'
        list = Json.parse(body)
        raise "#{sn[:host_name]}:#{port}#{path}: no list of tasks" unless list.is_a?(Array) && list.all? { |t| t.is_a?(Hash) }
        return list
      end
      raise "http://#{sn[:host_name]}:#{port}#{PAGES[0]}: HTTP status #{status}"
    end

    def port_of(sn)
      live = Master.status_packed(:LIVE_SERVERS)[:live_servers].find { |l| l[:server] == sn }
      raise "#{Names.server(sn)} is not a live server" if live.nil?
      port = live[:server_load][:info_server_port].to_i
      raise "#{Names.server(sn)} has no web pages" unless port > 0 && port < 65536
      port
    end

    def cells(t)
      since = t['statustimems'].to_i / 1000 > -1 && t['statustimems'].to_i >= 0 ? t['statustimems'] : t['starttimems']
      started = Time.at(t['starttimems'].to_i / 1000)
      [t['host'], started.strftime('%Y-%m-%d %H:%M:%S'), t['state'].to_s, t['description'].to_s,
       "#{t['status']} (since #{Time.now.to_i - since.to_i / 1000} seconds ago)"]
    end

    def table(list)
      status = list.map { |t| t['status'].to_s.length }.max + SINCE
      description = list.map { |t| t['description'].to_s.length }.max
      widths = WIDTHS + [[DESCRIPTION_MAX, description].min, [STATUS_MAX, status].min]
      rule = '+' + widths.map { |w| '-' * (w + 2) + '+' }.join('')
      ([['Host', 'Start Time', 'State', 'Description', 'Status']] + list.map { |t| cells(t) }).each do |row|
        puts rule
        puts '| ' + row.each_with_index.map { |text, i| fit(text, widths[i]) }.join(' | ') + ' |'
      end
      puts rule
    end

    # The text comes from a server: control characters must not reach the terminal.
    def fit(text, width)
      text = text.bytes.map { |b| b < 32 || b == 127 ? ' ' : b.chr }.join('')
      return text.ljust(width) if text.length <= width
      text[0, [width - 3, 0].max] + '.' * [3, width].min
    end
  end
end

Shell.need('json')
