# SPDX-License-Identifier: Apache-2.0
# Permissions and visibility labels.

module Security
  ACTIONS = { 'R' => :READ, 'W' => :WRITE, 'X' => :EXEC, 'C' => :CREATE, 'A' => :ADMIN }

  def self.capabilities
    Master.call('getSecurityCapabilities')[:capabilities]
  end

  def self.need(capability, what)
    return if capabilities.include?(capability)
    raise ArgumentError, "DISABLED: #{what}"
  end

  def self.available
    need(:AUTHORIZATION, 'Security features are not available')
  end

  def self.labels_available
    need(:CELL_VISIBILITY, 'Visibility labels feature is not available')
  end

  # The message Permission for a name: nothing, @namespace, or a table.
  def self.permission(actions, name, family, qualifier)
    return { type: :Global, global_permission: { action: actions } } if name.nil?
    if name.start_with?('@')
      ns = name[1..-1]
      Shell.need('namespace')
      raise ArgumentError, "Can't find a namespace: #{ns}" unless Namespaces.exists?(ns)
      return { type: :Namespace, namespace_permission: { namespace_name: ns, action: actions } }
    end
    raise ArgumentError, "Can't find a table: #{name}" unless Tables.exists?(name)
    raise ArgumentError, "Can't find a family: #{family}" unless family.nil? || Descriptor.family(Descriptor.get(name), family)
    { type: :Table, table_permission: { table_name: Names.table(name), family: family, qualifier: qualifier, action: actions } }
  end

  # A call of VisibilityLabelsService on the region of hbase:labels.
  def self.labels(method, fields, response)
    r = Meta.regions('hbase:labels')[0]
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', 'hbase:labels') if r.nil?
    call = { row: '', service_name: 'VisibilityLabelsService', method_name: method, request: fields }
    bytes = Wire.encode('CoprocessorServiceRequest', { region: { type: :REGION_NAME, value: r.name }, call: call })
    answer = Wire.decode('CoprocessorServiceResponse', Wire.call(r.host, r.port, 'ClientService', 'ExecService', bytes))
    Wire.decode(response, answer[:value][:value].to_s)
  end

  def self.failures(response)
    text = response[:result].map { |r| r[:exception] ? r[:exception][:value].to_s : '' }.join('')
    raise ArgumentError, text unless text.empty?
  end
end

class Command
  def list_security_capabilities
    list = Security.capabilities.map { |c| c.to_s }
    list.each { |c| puts c }
    list
  end

  def grant(*args)
    user = args[0]
    raise ArgumentError, 'First argument should be a String' unless user.is_a?(String)
    raise ArgumentError, 'Second argument should be a String or Hash' unless args[1].is_a?(String) || args[1].is_a?(Hash)
    return grant_cells(user, args[1], args[2]) if args[1].is_a?(Hash)
    ['Table name', 'Family', 'Qualifier'].each_with_index do |what, i|
      v = args[2 + i]
      break if v.nil?
      raise ArgumentError, "#{what} is not of String type" unless v.is_a?(String)
    end
    begin_now
    Security.available
    raise ArgumentError, 'Invalid permission: no actions associated with user' if args[1].empty?
    actions = args[1].upcase.split('').map { |c| Security::ACTIONS[c] }.compact
    p = Security.permission(actions, args[2], args[3], args[4])
    Master.call('Grant', { user_permission: { user: user, permission: p } })
    nil
  end

  # HBase: writes the cells of a scan again with the permissions as an attribute.
  def grant_cells(table, permissions, scan)
    raise ArgumentError, 'Scanner specification is not a Hash' unless scan.is_a?(Hash)
    list = permissions.map do |user, actions|
      { user: user.to_s, permissions: [{ type: :Global, global_permission: { action: actions.upcase.split('').map { |c| Security::ACTIONS[c] }.compact } }] }
    end
    again(table, scan, { name: 'acl', value: Wire.encode('UsersAndPermissions', { user_permissions: list }) })
  end

  def again(table, scan, attribute)
    t = table(table)
    begin_now
    count = 0
    more = Wire.encode('MutationProto', { attribute: [attribute] })
    options, fields = t.scan_of(scan)
    Rows.scan(t.name, options, Wire.encode('Scan', fields)) do |cells|
      cells.each { |c| t.mutate(2, c[0], [[c[1], c[2], c[3], 4, c[5]]], more) }
      count += 1
    end
    out.footer(count)
  end

  def revoke(user, table_name = nil, family = nil, qualifier = nil)
    Security.available
    p = Security.permission([], table_name, family, qualifier)
    Master.call('Revoke', { user_permission: { user: user, permission: p } })
    nil
  end

  def user_permission(table_regex = nil)
    out.header(['User', 'Namespace,Table,Family,Qualifier:Permission'])
    Security.available
    list = permissions_of(table_regex)
    list.each { |p| out.row([p[:user], permission_text(p[:permission])]) }
    out.footer(list.length)
  end

  def permissions_of(name)
    fields = { type: :Global }
    fields = { type: :Namespace, namespace_name: name[1..-1] } if name.to_s.start_with?('@')
    return Master.call('GetUserPermissions', fields)[:user_permission] if name.nil? || name.start_with?('@')
    pattern = Shell.java_pattern(name)
    Tables.names('.*').select { |t| pattern.match?(t) }.map do |t|
      Master.call('GetUserPermissions', { type: :Table, table_name: Names.table(t) })[:user_permission]
    end.flatten
  end

  def permission_text(p)
    t = p[:table_permission]
    n = p[:namespace_permission]
    actions = ((t || n || p[:global_permission] || {})[:action] || []).join(',')
    where = t ? "#{(t[:table_name] || {})[:namespace]},#{t[:table_name] ? Names.text(t[:table_name]) : ''},#{Bytes.toStringBinary(t[:family].to_s)},#{Bytes.toStringBinary(t[:qualifier].to_s)}" : "#{n ? n[:namespace_name] : ''},,,"
    "#{where}: [Permission: actions=#{actions}]"
  end

  # --- visibility labels ---

  def add_labels(*args)
    Security.labels_available
    list = args.flatten.compact
    raise ArgumentError, 'Arguments cannot be null' if list.empty?
    Security.failures(Security.labels('AddLabels', Wire.encode('VisibilityLabelsRequest', { visLabel: list.map { |l| { label: l } } }), 'VisibilityLabelsResponse'))
    nil
  end

  def list_labels(regex = '.*')
    Security.labels_available
    list = Security.labels('ListLabels', Wire.encode('ListLabelsRequest', { regex: regex }), 'ListLabelsResponse')[:label].map { |l| Bytes.toStringBinary(l) }
    list.each { |l| out.row([l]) }
    list
  end

  def set_auths(user, *args)
    change_auths('SetAuths', user, args)
  end

  def clear_auths(user, *args)
    change_auths('ClearAuths', user, args)
  end

  def change_auths(method, user, args)
    Security.labels_available
    fields = { user: user, auth: args.flatten.compact }
    Security.failures(Security.labels(method, Wire.encode('SetAuthsRequest', fields), 'VisibilityLabelsResponse'))
    nil
  end

  def get_auths(user)
    Security.labels_available
    list = Security.labels('GetAuths', Wire.encode('GetAuthsRequest', { user: user }), 'GetAuthsResponse')[:auth]
    list.each { |a| out.row([Bytes.toStringBinary(a)]) }
    list
  end

  def set_visibility(table, visibility, scan)
    raise NoMethodError, "undefined method `any?' for #{scan.nil? ? 'nil:NilClass' : "#{scan.inspect}:#{scan.class}"}" unless scan.respond_to?(:any?)
    again(table, scan, { name: 'VISIBILITY', value: Wire.encode('CellVisibility', { expression: visibility.to_s }) })
  end
end
Shell.need('ddl')
