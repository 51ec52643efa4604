# SPDX-License-Identifier: Apache-2.0
# On a terminal of 100 columns: padding, folded cells, bold errors.
create 't1', 'f'
put 't1', 'a rather long row key that is longer than a quarter of the terminal width', 'f:qualifier', 'v' * 150, 1700000000123
scan 't1'
get 't1', 'a rather long row key that is longer than a quarter of the terminal width'
describe 't1'
list
describe_namespace 'default'
exists 't1'
count 't1'
status
list_namespace
get 'none', 'r'
undefined_x
exit
