// SPDX-License-Identifier: Apache-2.0

// A program on gohbase: create, write, read, scan, increment, check, errors, drop. ZK=host:port is the
// server; each step prints 'PASS gohbase/name' or 'FAIL gohbase/name: reason'.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"
	"sync"
	"time"

	log "github.com/sirupsen/logrus"
	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/hrpc"
)

type values = map[string]map[string][]byte

type program struct {
	table          string
	admin          gohbase.AdminClient
	client         gohbase.Client
	passed, failed int
}

func (p *program) step(name string, body func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := body(ctx); err != nil {
		p.failed++
		fmt.Printf("FAIL gohbase/%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " | "))
		return false
	}
	p.passed++
	fmt.Printf("PASS gohbase/%s\n", name)
	return true
}

func expect(what string, wanted, got interface{}) error {
	if fmt.Sprint(wanted) != fmt.Sprint(got) {
		return fmt.Errorf("%s: expected %v, got %v", what, wanted, got)
	}
	return nil
}

func one(value string) values {
	return values{"f": {"q": []byte(value)}}
}

func (p *program) put(ctx context.Context, row string, v values, options ...func(hrpc.Call) error) error {
	put, err := hrpc.NewPutStr(ctx, p.table, row, v, options...)
	if err != nil {
		return err
	}
	_, err = p.client.Put(put)
	return err
}

// The row in the form f:q=value f:r=value.
func text(result *hrpc.Result) string {
	var cells []string
	for _, c := range result.Cells {
		cells = append(cells, fmt.Sprintf("%s:%s=%s", c.Family, c.Qualifier, c.Value))
	}
	return strings.Join(cells, " ")
}

func (p *program) get(ctx context.Context, row string, options ...func(hrpc.Call) error) (string, error) {
	get, err := hrpc.NewGetStr(ctx, p.table, row, options...)
	if err != nil {
		return "", err
	}
	result, err := p.client.Get(get)
	if err != nil {
		return "", err
	}
	return text(result), nil
}

func (p *program) holds(ctx context.Context, row, wanted string, options ...func(hrpc.Call) error) error {
	got, err := p.get(ctx, row, options...)
	if err != nil {
		return err
	}
	return expect(row, wanted, got)
}

// Returns the rows' keys, or the results of `show` for each row.
func (p *program) scan(ctx context.Context, start, stop string, options ...func(hrpc.Call) error) ([]string, error) {
	scan, err := hrpc.NewScanRangeStr(ctx, p.table, start, stop, options...)
	if err != nil {
		return nil, err
	}
	scanner := p.client.Scan(scan)
	var rows []string
	for {
		result, err := scanner.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, string(result.Cells[0].Row))
	}
}

func row(i int) string {
	return fmt.Sprintf("row%04d", i)
}

func fails(err error, class string) error {
	if err == nil {
		return fmt.Errorf("expected %s, but the call went through", class)
	}
	if !strings.Contains(err.Error(), class) {
		return fmt.Errorf("expected %s, got %v", class, err)
	}
	return nil
}

const rows = 1000

func (p *program) create(ctx context.Context) error {
	families := map[string]map[string]string{"f": {"VERSIONS": "3"}, "g": nil}
	create := hrpc.NewCreateTable(ctx, []byte(p.table), families, hrpc.SplitKeys([][]byte{[]byte(row(300)), []byte(row(700))}))
	if err := p.admin.CreateTable(create); err != nil {
		return err
	}
	if err := fails(p.admin.CreateTable(create), "TableExistsException"); err != nil {
		return err
	}
	list, err := hrpc.NewListTableNames(ctx, hrpc.ListRegex(p.table))
	if err != nil {
		return err
	}
	names, err := p.admin.ListTableNames(list)
	if err != nil {
		return err
	}
	return expect("tables", 1, len(names))
}

func (p *program) write(ctx context.Context) error {
	errors := make(chan error, rows)
	var group sync.WaitGroup
	for w := 0; w < 16; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			for i := w; i < rows; i += 16 {
				if err := p.put(ctx, row(i), values{"f": {"q": []byte(fmt.Sprint(i)), "r": []byte("x")}}); err != nil {
					errors <- err
				}
			}
		}(w)
	}
	group.Wait()
	close(errors)
	return <-errors
}

func (p *program) read(ctx context.Context) error {
	for _, skip := range [][]func(hrpc.Call) error{nil, {hrpc.SkipBatch()}} {
		if err := p.holds(ctx, row(299), "f:q=299 f:r=x", skip...); err != nil {
			return err
		}
		if err := p.holds(ctx, "nothing", "", skip...); err != nil {
			return err
		}
	}
	return p.holds(ctx, row(700), "f:r=x", hrpc.Families(map[string][]string{"f": {"r"}}))
}

func (p *program) scans(ctx context.Context) error {
	all, err := p.scan(ctx, "", "")
	if err != nil {
		return err
	}
	if err := expect("all rows", rows, len(all)); err != nil {
		return err
	}
	for i, got := range all {
		if got != row(i) {
			return fmt.Errorf("row %d is %s", i, got)
		}
	}
	for _, n := range []uint32{1, 7, 1000} {
		some, err := p.scan(ctx, row(250), row(350), hrpc.NumberOfRows(n))
		if err != nil {
			return err
		}
		if err := expect(fmt.Sprintf("rows by %d", n), 100, len(some)); err != nil {
			return err
		}
	}
	back, err := p.scan(ctx, row(705), row(695), hrpc.Reversed())
	if err != nil {
		return err
	}
	if err := expect("backwards", "row0705 row0704 row0703 row0702 row0701 row0700 row0699 row0698 row0697 row0696", strings.Join(back, " ")); err != nil {
		return err
	}
	prefixed, err := p.scan(ctx, "", "", hrpc.Filters(filter.NewPrefixFilter([]byte("row09"))))
	if err != nil {
		return err
	}
	return expect("by prefix", 100, len(prefixed))
}

// Small responses cut rows into parts, which the client joins, or returns as they are.
func (p *program) partial(ctx context.Context) error {
	wide := values{"f": {}}
	for i := 0; i < 200; i++ {
		wide["f"][fmt.Sprintf("%03d", i)] = make([]byte, 500)
	}
	if err := p.put(ctx, "wide", wide); err != nil {
		return err
	}
	whole, err := p.scan(ctx, "wide", "widf", hrpc.MaxResultSize(10000))
	if err != nil {
		return err
	}
	if err := expect("whole rows", 1, len(whole)); err != nil {
		return err
	}
	parts, err := p.scan(ctx, "wide", "widf", hrpc.MaxResultSize(10000), hrpc.AllowPartialResults())
	if err != nil {
		return err
	}
	if len(parts) < 5 {
		return fmt.Errorf("%d parts", len(parts))
	}
	return nil
}

func (p *program) count(ctx context.Context) error {
	for i := int64(1); i <= 5; i++ {
		increment, err := hrpc.NewIncStrSingle(ctx, p.table, "counter", "f", "n", 3)
		if err != nil {
			return err
		}
		got, err := p.client.Increment(increment)
		if err != nil {
			return err
		}
		if err := expect("counter", 3*i, got); err != nil {
			return err
		}
	}
	appended, err := hrpc.NewAppStr(ctx, p.table, "appended", one("ab"))
	if err != nil {
		return err
	}
	for _, wanted := range []string{"f:q=ab", "f:q=abab"} {
		result, err := p.client.Append(appended)
		if err != nil {
			return err
		}
		if err := expect("append", wanted, text(result)); err != nil {
			return err
		}
	}
	get, err := hrpc.NewGetStr(ctx, p.table, "counter")
	if err != nil {
		return err
	}
	result, err := p.client.Get(get)
	if err != nil {
		return err
	}
	return expect("stored", 15, binary.BigEndian.Uint64(result.Cells[0].Value))
}

func (p *program) check(ctx context.Context) error {
	for _, c := range []struct {
		expected []byte
		value    string
		done     bool
	}{{nil, "1", true}, {nil, "2", false}, {[]byte("1"), "3", true}, {[]byte("1"), "4", false}} {
		put, err := hrpc.NewPutStr(ctx, p.table, "checked", one(c.value))
		if err != nil {
			return err
		}
		done, err := p.client.CheckAndPut(put, "f", "q", c.expected)
		if err != nil {
			return err
		}
		if err := expect("put of "+c.value, c.done, done); err != nil {
			return err
		}
	}
	return p.holds(ctx, "checked", "f:q=3")
}

func (p *program) versions(ctx context.Context) error {
	for ts := uint64(1); ts <= 4; ts++ {
		if err := p.put(ctx, "versions", one(fmt.Sprint(ts)), hrpc.TimestampUint64(ts)); err != nil {
			return err
		}
	}
	if err := p.holds(ctx, "versions", "f:q=4 f:q=3 f:q=2", hrpc.MaxVersions(9)); err != nil {
		return err
	}
	if err := p.holds(ctx, "versions", "f:q=2", hrpc.TimeRangeUint64(0, 3)); err != nil {
		return err
	}
	del, err := hrpc.NewDelStr(ctx, p.table, "versions", one(""), hrpc.TimestampUint64(4), hrpc.DeleteOneVersion())
	if err != nil {
		return err
	}
	if _, err = p.client.Delete(del); err != nil {
		return err
	}
	if err := p.holds(ctx, "versions", "f:q=3"); err != nil {
		return err
	}
	if del, err = hrpc.NewDelStr(ctx, p.table, "versions", nil); err != nil {
		return err
	}
	if _, err = p.client.Delete(del); err != nil {
		return err
	}
	return p.holds(ctx, "versions", "")
}

// Fifty puts that are sent together; only the invalid put fails.
func (p *program) mistake(ctx context.Context) error {
	problems := make([]error, 50)
	var group sync.WaitGroup
	for i := range problems {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			v := one("v")
			if i == 25 {
				v = values{"none": {"q": []byte("v")}}
			}
			problems[i] = p.put(ctx, fmt.Sprintf("batch%02d", i), v)
		}(i)
	}
	group.Wait()
	for i, err := range problems {
		if i == 25 {
			err = fails(err, "NoSuchColumnFamilyException")
		}
		if err != nil {
			return fmt.Errorf("put %d: %v", i, err)
		}
	}
	return nil
}

func (p *program) drop(ctx context.Context) error {
	table := []byte(p.table)
	if err := fails(p.admin.DeleteTable(hrpc.NewDeleteTable(ctx, table)), "TableNotDisabledException"); err != nil {
		return err
	}
	if err := p.admin.DisableTable(hrpc.NewDisableTable(ctx, table)); err != nil {
		return err
	}
	if err := fails(p.admin.DisableTable(hrpc.NewDisableTable(ctx, table)), "TableNotEnabledException"); err != nil {
		return err
	}
	if err := p.admin.EnableTable(hrpc.NewEnableTable(ctx, table)); err != nil {
		return err
	}
	if err := p.holds(ctx, row(1), "f:q=1 f:r=x"); err != nil {
		return err
	}
	if err := p.admin.DisableTable(hrpc.NewDisableTable(ctx, table)); err != nil {
		return err
	}
	return p.admin.DeleteTable(hrpc.NewDeleteTable(ctx, table))
}

func main() {
	log.SetLevel(log.FatalLevel)
	zk := os.Getenv("ZK")
	options := []gohbase.Option{gohbase.FlushInterval(2 * time.Millisecond)}
	if os.Getenv("SNAPPY") != "" {
		options = append(options, gohbase.CompressionCodec("snappy"))
	}
	p := &program{
		table:  fmt.Sprintf("gohbase_%06d", rand.New(rand.NewSource(time.Now().UnixNano())).Intn(1000000)),
		admin:  gohbase.NewAdminClient(zk),
		client: gohbase.NewClient(zk, options...),
	}
	if p.step("create", p.create) {
		p.step("write", p.write)
		p.step("read", p.read)
		p.step("scan", p.scans)
		p.step("rows in parts", p.partial)
		p.step("increment and append", p.count)
		p.step("check and put", p.check)
		p.step("versions and deletes", p.versions)
		p.step("one mistake among fifty", p.mistake)
		p.step("disable, enable, drop", p.drop)
	}
	p.step("status", func(ctx context.Context) error {
		status, err := p.admin.ClusterStatus()
		if err != nil {
			return err
		}
		return expect("servers", 1, len(status.GetLiveServers()))
	})
	p.client.Close()
	fmt.Printf("%d passed, %d failed\n", p.passed, p.failed)
	if p.failed > 0 {
		os.Exit(1)
	}
}
