package relay

import (
	"encoding/binary"
	"errors"
	"time"
)

// A device's history as a State keeps it: a version, and then numbers as varints, times as their distance from the
// first. A device that was paged once takes some 50 bytes.
const recordVersion = 1

// What a page has, beside its id and its forwards.
const (
	hasLast = 1 << iota
	isCooled
	hasLease
	hasFailed
)

var errRecord = errors.New("relay: a record of the state cannot be read: it is damaged, or a newer version's")

func (d *deviceHistory) encode() []byte {
	b := make([]byte, 0, 64)
	b = append(b, recordVersion)
	b = binary.AppendVarint(b, d.seen)
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	moment := func(t int64) { number(t - d.seen) }
	moment(d.fullAt)
	number(d.month)
	number(d.count)
	number(d.digested)
	number(int64(len(d.pages)))
	for i := range d.pages {
		p := &d.pages[i]
		b = append(b, p.id[:]...)
		has := byte(0)
		flag := func(bit byte, set bool) {
			if set {
				has |= bit
			}
		}
		flag(hasLast, p.last != 0)
		flag(isCooled, p.cooledUntil != 0)
		flag(hasLease, p.lease != 0)
		flag(hasFailed, p.failed.lease != 0)
		b = append(b, has)
		number(int64(len(p.forwards)))
		for _, at := range p.forwards {
			moment(at)
		}
		if has&hasLast != 0 {
			moment(p.last)
		}
		if has&isCooled != 0 {
			moment(p.cooledUntil)
		}
		if has&hasLease != 0 {
			b = binary.LittleEndian.AppendUint64(b, p.lease)
			moment(p.leaseUntil)
		}
		if has&hasFailed != 0 {
			b = binary.LittleEndian.AppendUint64(b, p.failed.lease)
			moment(p.failed.at)
			number(int64(p.failed.status))
			number(int64(p.failed.retryAfter))
			number(int64(len(p.failed.reason)))
			b = append(b, p.failed.reason...)
		}
	}
	return b
}

// decodeHistory reads a record. None at all is the history of a new device.
func decodeHistory(record []byte) (deviceHistory, error) {
	if len(record) == 0 {
		return deviceHistory{}, nil
	}
	if record[0] != recordVersion {
		return deviceHistory{}, errRecord
	}
	r := recordReader{rest: record[1:]}
	var d deviceHistory
	d.seen = r.number()
	moment := func() int64 { return d.seen + r.number() }
	d.fullAt = moment()
	d.month = r.number()
	d.count = r.number()
	d.digested = r.number()
	d.pages = make([]pageHistory, r.length(len(pageHistory{}.id)))
	for i := range d.pages {
		p := &d.pages[i]
		copy(p.id[:], r.bytes(len(p.id)))
		has := r.bytes(1)
		if has == nil {
			break
		}
		p.forwards = make([]int64, r.length(1))
		for j := range p.forwards {
			p.forwards[j] = moment()
		}
		if has[0]&hasLast != 0 {
			p.last = moment()
		}
		if has[0]&isCooled != 0 {
			p.cooledUntil = moment()
		}
		if has[0]&hasLease != 0 {
			p.lease = r.uint64()
			p.leaseUntil = moment()
		}
		if has[0]&hasFailed != 0 {
			p.failed.lease = r.uint64()
			p.failed.at = moment()
			p.failed.status = int(r.number())
			p.failed.retryAfter = time.Duration(r.number())
			p.failed.reason = string(r.bytes(r.length(1)))
		}
	}
	if r.bad || len(r.rest) > 0 {
		return deviceHistory{}, errRecord
	}
	return d, nil
}

// A recordReader reads what is left of a record. After bad, all it reads is zero.
type recordReader struct {
	rest []byte
	bad  bool
}

func (r *recordReader) number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// length reads how many items follow, of so many bytes each at least.
func (r *recordReader) length(size int) int {
	n := r.number()
	if n < 0 || n > int64(len(r.rest)/size) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *recordReader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *recordReader) uint64() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
