# SPDX-License-Identifier: Apache-2.0
# Namespaces.

module Namespaces
  def self.get(name)
    Master.call('GetNamespaceDescriptor', { namespaceName: Names.not_null(Arguments.string(name)) })[:namespaceDescriptor]
  end

  def self.exists?(name)
    !get(name).nil?
  rescue HBaseError => e
    raise e unless e.is?('NamespaceNotFoundException')
    false
  end
end

class Command
  def create_namespace(namespace, *args)
    raise ArgumentError, 'Namespace name must be of type String' unless namespace.is_a?(String)
    config = {}
    args.flatten.compact.each do |arg|
      raise ArgumentError, "#{arg.class} of #{arg.inspect} is not of Hash or String type" unless arg.is_a?(Hash)
      arg.each { |k, v| config[k.to_s] = v.to_s }
    end
    d = { name: namespace, configuration: config.map { |k, v| { name: k, value: v } } }
    Master.call('CreateNamespace', { namespaceDescriptor: d })
    nil
  end

  def alter_namespace(namespace, *args)
    raise ArgumentError, 'Namespace name must be of type String' unless namespace.is_a?(String)
    d = Namespaces.get(namespace)
    config = {}
    d[:configuration].each { |c| config[c[:name]] = c[:value] }
    args.flatten.compact.each do |arg|
      raise ArgumentError, "#{arg.class} of #{arg.inspect} is not of Hash type" unless arg.is_a?(Hash)
      case arg[METHOD]
      when 'unset' then config.delete(arg[NAME])
      when 'set' then arg.each { |k, v| config[k.to_s] = v.to_s unless k == METHOD }
      else raise ArgumentError, "Unknown method #{arg[METHOD]}"
      end
    end
    d[:configuration] = config.map { |k, v| { name: k, value: v } }
    Master.call('ModifyNamespace', { namespaceDescriptor: d })
    nil
  end

  def drop_namespace(namespace)
    Names.not_null(Arguments.string(namespace))
    Shell.confirm("Drop the namespace #{namespace}")
    Master.call('DeleteNamespace', { namespaceName: namespace })
    nil
  end

  def describe_namespace(namespace)
    d = Namespaces.get(namespace)
    text = "{NAME => '#{d[:name]}'" + d[:configuration].sort_by { |c| c[:name] }.map { |c| ", #{c[:name]} => '#{c[:value]}'" }.join('') + '}'
    out.header(['DESCRIPTION'], [64])
    out.row([text], true, [64])
    if Tables.exists?('hbase:quota')
      out.header(%w[QUOTAS])
      puts 0 # HBase prints what its header returns
      Shell.need('quotas')
      out.footer(Quotas.list(NAMESPACE => namespace.to_s) { |_, quota| out.row([quota]) })
    else
      puts 'Quota is disabled'
    end
    nil
  end

  def list_namespace(regex = '.*')
    out.header(['NAMESPACE'])
    Shell.check_pattern(regex)
    pattern = Regexp.new(regex) # HBase finds it anywhere in a name
    names = Master.call('ListNamespaces')[:namespaceName].select { |n| pattern.match?(n) }
    names.each { |n| out.row([n]) }
    out.footer(names.length)
    nil
  end

  def list_namespace_tables(namespace)
    out.header(['TABLE'])
    raise ArgumentError, "Failed to find namespace named #{namespace}" if namespace.nil?
    names = Master.call('ListTableNamesByNamespace', { namespaceName: Arguments.string(namespace) })[:tableName].map { |t| t[:qualifier] }
    names.each { |n| out.row([n]) }
    out.footer(names.length)
    names
  end
end
Shell.need('ddl')
