// SPDX-License-Identifier: Apache-2.0

// Visits of pages, counted by eight goroutines in one table: librorqual in Go, by cgo.
//
//	go run . file:/tmp/visits     in this process; or hbase://localhost:2181, memory:
//
// Any thread may use a handle of the library, so any goroutine may. Go passes pointers to bytes that C reads during the
// call; a row from C is copied to Go and freed.
package main

/*
#cgo pkg-config: rorqual
#include <rorqual/rorqual.h>
#include <stdlib.h>

// Go may not give C a struct that holds pointers to Go's memory: so bytes come as pointer and length.
static rq_err visits_add(rq_table *t, const void *row, size_t row_len, int64_t amount, int64_t *total, rq_failure *why)
{
	return rq_add_value(t, rq_bytes_of(row, row_len), rq_text("v"), rq_text("count"), amount, total, why);
}

static rq_err visits_scan(rq_table *t, rq_scanner **scanner, rq_failure *why)
{
	rq_scan_request scan = {.size = sizeof scan};
	return rq_table_scan(t, &scan, scanner, why);
}

static rq_err visits_create(rq_db *db, const char *name, rq_failure *why)
{
	rq_family family = {"v", NULL, 0};
	rq_table_spec spec = {.size = sizeof spec, .name = name, .families = &family, .family_count = 1};
	return rq_table_create(db, &spec, why);
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// Failure is an error of the library.
type Failure struct {
	Code       string // such as RQ_E_TABLE_NOT_FOUND
	HBaseClass string
	Message    string
	Retryable  bool
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

func newWhy() C.rq_failure { return C.rq_failure{size: C.sizeof_rq_failure} }

func failure(code C.rq_err, why *C.rq_failure) error {
	if code == C.RQ_OK {
		return nil
	}
	return &Failure{C.GoString(C.rq_err_name(code)), C.GoString(&why.hbase_class[0]), C.GoString(&why.message[0]),
		bool(why.retryable)}
}

// Table counts visits. Goroutines may share it.
type Table struct {
	db    *C.rq_db
	table *C.rq_table
}

// Create makes the table of that name, after dropping an earlier one.
func Create(url, name string) (*Table, error) {
	t, why := &Table{}, newWhy()
	at, called := C.CString(url), C.CString(name)
	defer C.free(unsafe.Pointer(at))
	defer C.free(unsafe.Pointer(called))
	if err := failure(C.rq_connect(at, nil, &t.db, &why), &why); err != nil {
		return nil, err
	}
	if err := t.create(called); err != nil {
		C.rq_disconnect(t.db, nil)
		return nil, err
	}
	return t, nil
}

func (t *Table) create(name *C.char) error {
	var exists C.bool
	why := newWhy()
	code := C.rq_table_exists(t.db, name, &exists, &why)
	if code == C.RQ_OK && bool(exists) {
		code = C.rq_table_disable(t.db, name, &why)
		if code == C.RQ_OK {
			code = C.rq_table_drop(t.db, name, &why)
		}
	}
	if code == C.RQ_OK {
		code = C.visits_create(t.db, name, &why)
	}
	if code == C.RQ_OK {
		code = C.rq_table_open(t.db, name, &t.table, &why)
	}
	return failure(code, &why)
}

// Close makes all writes durable.
func (t *Table) Close() error {
	why := newWhy()
	C.rq_table_close(t.table)
	return failure(C.rq_disconnect(t.db, &why), &why)
}

// bytesOf is a pointer that C may read during a call, and the length.
func bytesOf(s []byte) (unsafe.Pointer, C.size_t) {
	if len(s) == 0 {
		return nil, 0
	}
	return unsafe.Pointer(&s[0]), C.size_t(len(s))
}

// Add counts visits of a page and returns how many there are now.
func (t *Table) Add(page string, visits int64) (int64, error) {
	var total C.int64_t
	why := newWhy()
	row, length := bytesOf([]byte(page))
	err := failure(C.visits_add(t.table, row, length, C.int64_t(visits), &total, &why), &why)
	return int64(total), err
}

func copied(b C.rq_bytes) []byte { return C.GoBytes(b.data, C.int(b.len)) }

// Each calls visit for every page, in the order of their names.
func (t *Table) Each(visit func(page string, visits int64)) error {
	var scanner *C.rq_scanner
	why := newWhy()
	if err := failure(C.visits_scan(t.table, &scanner, &why), &why); err != nil {
		return err
	}
	defer C.rq_scanner_close(scanner)
	for {
		var row *C.rq_row
		if err := failure(C.rq_scanner_next(scanner, &row, &why), &why); err != nil || row == nil {
			return err
		}
		cell := row.cells
		page, value := copied(cell.row), copied(cell.value)
		C.rq_row_free(row)
		visit(string(page), int64(binary.BigEndian.Uint64(value)))
	}
}

// count lets eight goroutines visit the pages, and returns the first error.
func count(t *Table, pages []string) error {
	const goroutines, rounds = 8, 100
	errors := make(chan error, goroutines)
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := 0; round < rounds; round++ {
				for p, page := range pages {
					if _, err := t.Add(page, int64(p+1)); err != nil {
						errors <- err
						return
					}
				}
			}
		}()
	}
	all.Wait()
	close(errors)
	return <-errors
}

func run(url string) error {
	pages := []string{"/", "/about", "/posts/1"}
	t, err := Create(url, "visits")
	if err != nil {
		return err
	}
	if err = count(t, pages); err == nil {
		err = t.Each(func(page string, visits int64) { fmt.Println(visits, page) })
	}
	if closing := t.Close(); err == nil {
		err = closing
	}
	return err
}

func main() {
	url := "memory:"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := run(url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
