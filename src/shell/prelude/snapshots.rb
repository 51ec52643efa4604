# SPDX-License-Identifier: Apache-2.0
# Snapshots.

module Snapshots
  def self.all
    Master.call('GetCompletedSnapshots')[:snapshots]
  end

  def self.named(regex)
    pattern = Shell.java_pattern(regex)
    all.select { |s| pattern.match?(s[:name]) }
  end

  def self.of_tables(table_regex, name_regex)
    tables = Shell.java_pattern(table_regex)
    named(name_regex).select { |s| tables.match?(s[:table].to_s.sub(/\Adefault:/, '')) }
  end

  def self.created(s)
    Time.at(s[:creation_time] / 1000).to_s
  end

  def self.delete(name)
    Names.null('Cannot invoke "String.getBytes(String)" because "s" is null') if name.nil?
    Arguments.refuse('deleteSnapshot', [name], 'OrgApacheHadoopHbaseClient::HBaseAdmin', ['byte[]', 'java.lang.String']) unless name.is_a?(String)
    Names.illegal('Name is null or empty') if name.empty?
    Names.table(name)
    Master.call('DeleteSnapshot', { snapshot: { name: name } })
  end

  # HBase: a snapshot's name follows the rules of a table's qualifier.
  def self.check_name(name)
    Names.check('default', name, name, 'Snapshot qualifiers')
  end
end

class Command
  def snapshot(table, snapshot_name, *args)
    raise ArgumentError, 'Table name must be of type String' unless table.is_a?(String)
    raise ArgumentError, 'Snapshot name must be of type String' unless snapshot_name.is_a?(String)
    Snapshots.check_name(snapshot_name)
    (args.empty? ? [{}] : args).each do |arg|
      s = { name: snapshot_name, table: Names.text(Names.table(table)), type: arg[SKIP_FLUSH] == true ? :SKIPFLUSH : :FLUSH,
            ttl: Arguments.long(arg[TTL] || -1), max_file_size: arg[MAX_FILESIZE] || -1, version: 2 }
      s.delete(:ttl) if s[:ttl] == -1
      s.delete(:max_file_size) if s[:max_file_size] == -1
      r = Master.call('Snapshot', { snapshot: s })
      r[:proc_id].nil? || r[:proc_id] < 0 ? wait_for_snapshot(s) : Master.follow(r[:proc_id])
    end
    args.empty? ? nil : args
  end

  def wait_for_snapshot(s)
    begun = Shell.monotonic
    until Master.call('IsSnapshotDone', { snapshot: s })[:done]
      Shell.progress { "snapshot #{s[:name]}: #{(Shell.monotonic - begun).to_i} s" }
      Wire.pause(0.05)
    end
  end

  def list_snapshots(regex = '.*')
    out.header(['SNAPSHOT', 'TABLE + CREATION TIME + TTL(Sec)'])
    list = Snapshots.named(regex)
    list.each do |s|
      out.row([s[:name], "#{s[:table]} (#{Snapshots.created(s)}) #{ttl_text(s)}"])
    end
    out.footer(list.length)
    list.map { |s| s[:name] }
  end

  def ttl_text(s)
    ttl = s[:ttl]
    return 'FOREVER' if ttl == 0
    Shell.now_ms > s[:creation_time] + ttl * 1000 ? "#{ttl} (Expired) " : ttl.to_s
  end

  def list_table_snapshots(table_name_regex, snapshot_name_regex = '.*')
    out.header(['SNAPSHOT', 'TABLE + CREATION TIME'])
    list = Snapshots.of_tables(table_name_regex, snapshot_name_regex)
    list.each { |s| out.row([s[:name], "#{s[:table]} (#{Snapshots.created(s)})"]) }
    out.footer(list.length)
    list.map { |s| s[:name] }
  end

  def delete_snapshot(snapshot_name)
    Shell.confirm("Delete the snapshot #{snapshot_name}")
    Snapshots.delete(snapshot_name)
    nil
  end

  def show_snapshots
    out.header(['SNAPSHOT', 'TABLE + CREATION TIME'])
    list = yield
    list.each { |s| out.row([s[:name], "#{s[:table]} (#{Snapshots.created(s)})"]) }
  end

  def delete_all_snapshot(regex)
    list = show_snapshots { Snapshots.named(regex) }
    if list.empty?
      puts "No snapshots matched the regex #{regex}"
      return
    end
    puts "\nDelete the above #{list.length} snapshots (y/n)?"
    return unless Shell.answer =~ /y.*/i
    begin_now
    list.each do |s|
      begin
        Snapshots.delete(s[:name])
      rescue HBaseError
        next # those that are left are listed
      end
    end
    end_now
    left = Snapshots.named(regex)
    done = list.length - left.length
    puts "#{done} snapshots successfully deleted." unless done == 0
    return if left.empty?
    puts "\nFailed to delete the below #{left.length} snapshots."
    show_snapshots { left }
  end

  def delete_table_snapshots(table_nameregex, snapshot_name_regex = '.*')
    list = show_snapshots { Snapshots.of_tables(table_nameregex, snapshot_name_regex) }
    if list.empty?
      puts "No snapshots matched the table name regular expression #{table_nameregex} and the snapshot name regular expression #{snapshot_name_regex}"
      return
    end
    puts "\nDelete the above #{list.length} snapshots (y/n)?"
    return unless Shell.answer =~ /y.*/i
    begin_now
    list.each do |s|
      begin
        Snapshots.delete(s[:name])
        puts "Successfully deleted snapshot: #{s[:name]}"
      rescue HBaseError => e
        puts "Failed to delete snapshot: #{s[:name]}, due to below exception,\n#{e.message}"
      end
      puts "\n"
    end
  end

  def described(name)
    Snapshots.all.find { |s| s[:name] == name } ||
      raise(HBaseError.make('org.apache.hadoop.hbase.snapshot.RestoreSnapshotException', "Unable to find the table name for snapshot=#{name.nil? ? 'null' : name}"))
  end

  def clone_snapshot(snapshot_name, table, args = {})
    raise ArgumentError, 'Arguments should be a Hash' unless args.is_a?(Hash)
    t = Names.table(table)
    raise HBaseError.make('org.apache.hadoop.hbase.TableExistsException', table) if Tables.exists?(table)
    Master.call('RestoreSnapshot', { snapshot: { name: Names.not_null(snapshot_name), table: Names.text(t) }, restoreACL: args[RESTORE_ACL] || false, customSFT: args[CLONE_SFT] })
    nil
  end

  def restore_snapshot(snapshot_name, args = {})
    raise ArgumentError, 'Arguments should be a Hash' unless args.is_a?(Hash)
    Arguments.refuse('restoreSnapshot', [snapshot_name, true, false], 'OrgApacheHadoopHbaseClient::HBaseAdmin') unless snapshot_name.nil? || snapshot_name.is_a?(String)
    s = described(snapshot_name)
    Shell.confirm("Restore #{s[:table]}: its rows since the snapshot are lost")
    if Tables.exists?(s[:table]) && !Tables.disabled?(s[:table])
      raise HBaseError.make('org.apache.hadoop.hbase.TableNotDisabledException', s[:table])
    end
    Master.call('RestoreSnapshot', { snapshot: { name: snapshot_name, table: s[:table] }, restoreACL: args[RESTORE_ACL] || false })
    nil
  end
end
Shell.need('ddl')
