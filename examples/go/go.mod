module rorqual/examples/visits

go 1.18
