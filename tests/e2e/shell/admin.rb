# SPDX-License-Identifier: Apache-2.0
# Commands of an administrator in the official HBase shell: tools, quotas, procedures, configuration. Each section prints its
# name, then what its commands print; tests/e2e/shell_admin.py compares with admin.expected, which a real HBase 2.6.1 gave.

def section(name)
  puts "## #{name}"
  begin
    yield
  rescue Exception => e
    puts "ERROR: #{e.message.lines.first}"
  end
end

# Leftovers of an earlier session.
begin
  disable 'admin_t' if is_enabled 'admin_t'
  drop 'admin_t'
rescue Exception
end

def remove_quotas
  %w[exceedThrottleQuota n.default r.all t.adm_t t.admin_t u.u1 u.u2 u.u9].each { |row| deleteall 'hbase:quota', row }
end
remove_quotas

class RegionNames # for rorqual shell: the names of Java's methods
  def initialize(region)
    @region = region
  end

  def getEncodedName
    @region.encoded
  end

  def getRegionNameAsString
    @region.name
  end
end

def regions_of(table)
  if Object.const_defined?(:Meta) # rorqual shell has no Java
    return Meta.regions(table).map { |r| RegionNames.new(r) }
  end
  name = org.apache.hadoop.hbase.TableName.valueOf(table)
  connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection
  locations = connection.getRegionLocator(name).getAllRegionLocations
  locations.map { |l| l.getRegion }
ensure
  connection.close if connection
end

section('create') { create 'admin_t', 'cf', SPLITS => ['m'] }
section('alter noreopen') { alter 'admin_t', MAX_FILESIZE => '12345678', METHOD => 'table_att', 'REOPEN_REGIONS' => 'false' }
section('alter_async noreopen') { alter_async 'admin_t', {NAME=>'cf', VERSIONS=>3} }
section('alter_status') { alter_status 'admin_t' }
section('regioninfo') { $enc = regions_of('admin_t')[0].getEncodedName; regioninfo($enc) }
section('regioninfo full name') { regioninfo(regions_of('admin_t')[1].getRegionNameAsString) }
section('hbck_chore_run') { hbck_chore_run }
section('unassign') { unassign $enc }
section('rit after unassign') { rit }
section('assign') { assign $enc }
section('rit') { rit }
section('disable') { disable 'admin_t' }
section('alter disabled') { alter 'admin_t', {NAME=>'cf', VERSIONS=>4} }
section('alter_status disabled') { alter_status 'admin_t' }
section('enable') { enable 'admin_t' }
section('normalize') { normalize }
section('normalizer_switch') { normalizer_switch false }
section('normalizer_enabled') { normalizer_enabled }
section('normalize off') { normalize }
section('normalizer_switch on') { normalizer_switch true }
section('normalize table unknown') { normalize 'TABLE_NAME'=>'nosuch' }
section('update_all_config') { update_all_config }
section('clear_deadservers') { clear_deadservers }
section('clear_deadservers unknown') { clear_deadservers 'localhost,1234,5678' }
section('list_deadservers') { list_deadservers }
section('list_decommissioned') { list_decommissioned_regionservers }
section('list_locks') { list_locks }
section('balancer') { balancer }
section('balancer dry') { balancer 'dry_run' }
section('balancer force') { balancer 'force' }
section('balance_switch') { balance_switch false }
section('balancer off') { balancer }
section('balance_switch on') { balance_switch true }
section('move') { move $enc }
section('catalogjanitor_run') { catalogjanitor_run }
section('is_in_maintenance_mode') { is_in_maintenance_mode }
section('list_quotas') { list_quotas }
section('set_quota') { set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '10M/sec' }
section('list_quotas2') { list_quotas }
section('set_quota ns') { set_quota TYPE => THROTTLE, NAMESPACE => 'default', LIMIT => '10req/sec', SCOPE => CLUSTER }
section('set_quota table') { set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, TABLE => 'admin_t', LIMIT => '100CU/min' }
section('set_quota user table') { set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, USER=>'u1', TABLE => 'admin_t', LIMIT => '3req/hour' }
section('set_quota user ns') { set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, USER=>'u1', NAMESPACE => 'default', LIMIT => '3req/day' }
section('set_quota rs') { set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '30000req/sec' }
section('set_quota bypass') { set_quota USER => 'u2', GLOBAL_BYPASS => true }
section('set_quota space ns') { set_quota TYPE => SPACE, NAMESPACE => 'default', LIMIT => '10G', POLICY => NO_WRITES }
section('list_quotas3') { list_quotas }
section('list_quotas user') { list_quotas USER => 'u.*' }
section('list_quotas table') { list_quotas TABLE => 'admin_t' }
section('enable_exceed') { enable_exceed_throttle_quota }
section('set rs read') { set_quota TYPE => THROTTLE, REGIONSERVER => 'all', THROTTLE_TYPE=>READ, LIMIT => '30000req/sec' }
section('set rs write') { set_quota TYPE => THROTTLE, REGIONSERVER => 'all', THROTTLE_TYPE=>WRITE, LIMIT => '30000req/sec' }
section('enable_exceed2') { enable_exceed_throttle_quota }
section('disable_exceed') { disable_exceed_throttle_quota }
section('disable_rpc_throttle') { disable_rpc_throttle }
section('disable_rpc_throttle again') { disable_rpc_throttle }
section('enable_rpc_throttle') { enable_rpc_throttle }
section('set_quota none') { set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => NONE }
section('set_quota none table') { set_quota TYPE => THROTTLE, USER => 'u1', TABLE=>'admin_t', LIMIT => NONE }
section('set_quota none type') { set_quota TYPE => THROTTLE, TABLE=>'admin_t', THROTTLE_TYPE=>WRITE, LIMIT => NONE }
section('set_quota zero') { set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '0req/sec' }
section('set_quota space none') { set_quota TYPE => SPACE, TABLE => 'admin_t', LIMIT => NONE }
section('set_quota nothing') { set_quota TYPE => THROTTLE, USER => 'u9', LIMIT => NONE }
section('set_quota nothing type') { set_quota TYPE => THROTTLE, USER => 'u9', THROTTLE_TYPE=>WRITE, LIMIT => NONE }
section('list_quotas4') { list_quotas }
section('quota rows') { scan 'hbase:quota', { COLUMNS => 'q' } }
section('drop') { disable 'admin_t'; drop 'admin_t' }
section('quota rows after the drop') { scan 'hbase:quota', { COLUMNS => 'q' } }
remove_quotas
