# SPDX-License-Identifier: Apache-2.0
# What a prompt says behind an error of the language: what was probably meant. Scripts get the error alone.

module Shell
  class << self
    SQL = /\A\s*(select|insert|update|delete\s+from|show\s+(tables|databases)|use|(create|drop|alter)\s+table)\s+/i
    ASK = "list; scan 't'; get 't', 'row'; put 't', 'row', 'cf:q', 'value'"

    # A line for an error with that text, or nil; `statement` is what was typed.
    def hint_of(kind, message, name, statement)
      return 'Write \' or " for a quote: others are letters of names.' if statement =~ /\xe2\x80[\x98\x99\x9c\x9d]/
      return "This is no SQL: #{ASK}" if statement =~ SQL || statement =~ /\A\s*show\s+tables\s*;?\s*\z/i
      return 'A comma stands between two arguments.' if kind == 'SyntaxError' && lacks_comma?(statement)
      name.nil? ? nil : hint_of_name(message, name.to_s, statement)
    end

    private

    # Behind a command's first text, or before an option.
    def lacks_comma?(statement)
      statement =~ /\A\s*\w+\s+(['"])[^'"]*\1\s*[\['"{]/ || statement =~ /['"\]}\d]\s+\w+\s*=>/
    end

    def hint_of_name(message, name, statement)
      return nil unless message =~ /\Aundefined (local variable or )?method/ && message.include?('HBaseReceiver')
      command = nearest(name, @preludes.keys + %w[help tools exit quit puts])
      return "Did you mean #{command}?" if !command.nil? && statement.strip.start_with?(name)
      quoted = statement =~ /\A\s*(\w+)[ (].*(?<!['"\w:])#{Regexp.escape(name)}(?!['"\w])/ && @preludes.key?($1)
      quoted ? "Names of tables, rows and columns are quoted: '#{name}'." : nil
    end
  end
end
