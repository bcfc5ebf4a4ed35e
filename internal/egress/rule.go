// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Flag is the name of the manager's flag that lifts the rule for some addresses.
const Flag = "allow-outgoing-cidr"

// Forbidden says that a call was refused because of the address it would have gone to. It is in the chain of the client's
// error.
type Forbidden struct {
	// Host is what was to be called: a name or an address, without port.
	Host string
	// Addr is the refused address that it stands for.
	Addr netip.Addr
	// Kind of the address, such as "link-local".
	Kind string
}

// Error names the host, the address and the flag that would allow it.
func (f *Forbidden) Error() string {
	target := f.Host
	if target != f.Addr.String() {
		target = fmt.Sprintf("%s resolves to %s, which", f.Host, f.Addr)
	}
	return fmt.Sprintf("%s is a %s address, which the manager does not call unless its flag --%s allows it", target, f.Kind, Flag)
}

// refused lists what is not called. A cloud's metadata address that is link-local needs no entry of its own.
var refused = []struct {
	kind   string
	prefix netip.Prefix
}{
	// All of 0.0.0.0/8: systems differ in what they take for "this host".
	{"unspecified", netip.MustParsePrefix("0.0.0.0/8")},
	{"unspecified", netip.MustParsePrefix("::/128")},
	{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
	{"loopback", netip.MustParsePrefix("::1/128")},
	{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
	{"link-local", netip.MustParsePrefix("fe80::/10")},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
	{"broadcast", netip.MustParsePrefix("255.255.255.255/32")},
	{"multicast", netip.MustParsePrefix("ff00::/8")},
	{"metadata", netip.MustParsePrefix("100.100.100.200/32")},     // Alibaba Cloud
	{"metadata", netip.MustParsePrefix("168.63.129.16/32")},       // Azure
	{"metadata", netip.MustParsePrefix("192.0.0.192/32")},         // Oracle Cloud Classic
	{"metadata", netip.MustParsePrefix("fd00:ec2::/32")},          // AWS: metadata, pod identity, time, names
	{"metadata", netip.MustParsePrefix("fd20:ce::254/128")},       // Google Cloud
	{"metadata", netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128")}, // Oracle Cloud
	{"metadata", netip.MustParsePrefix("fd00:42::42/128")},        // Scaleway
	// Where these two carry an IPv4 address depends on the network, so that it cannot be judged.
	{"locally translated", netip.MustParsePrefix("64:ff9b:1::/48")},
	{"tunnelled", netip.MustParsePrefix("2001::/32")}, // Teredo
}

// embedding lists where an IPv6 address carries an IPv4 address at a known place, which the network may deliver to.
var embedding = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible; holds :: and ::1 too, which stay refused
	{netip.MustParsePrefix("::ffff:0:0/96"), 12},   // IPv4-mapped
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// rule decides which addresses are called.
type rule struct{ allowed []netip.Prefix }

// kind returns what is wrong with an address, "" if nothing is.
func (r rule) kind(addr netip.Addr) string {
	forms := spellings(addr)
	for _, form := range forms {
		for _, p := range r.allowed {
			if p.Contains(form) {
				return ""
			}
		}
	}
	for _, form := range forms {
		for _, entry := range refused {
			if entry.prefix.Contains(form) {
				return entry.kind
			}
		}
	}
	return ""
}

// spellings returns an address without its zone, which no prefix would match, and the IPv4 address it carries, if any.
func spellings(addr netip.Addr) []netip.Addr {
	addr = addr.WithZone("")
	if addr.Is4() {
		return []netip.Addr{addr}
	}
	// A netip prefix never contains an IPv4-mapped address.
	if addr.Is4In6() {
		return []netip.Addr{addr.Unmap()}
	}
	for _, e := range embedding {
		if e.prefix.Contains(addr) {
			b := addr.As16()
			return []netip.Addr{addr, netip.AddrFrom4([4]byte(b[e.offset : e.offset+4]))}
		}
	}
	return []netip.Addr{addr}
}

// ParsePrefixes reads the value of the flag: address ranges with commas between them. Empty means none.
func ParsePrefixes(s string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q is not an address range such as 127.0.0.0/8 or fd00::/8", Flag, part)
		}
		prefixes = append(prefixes, unmapped(p).Masked())
	}
	return prefixes, nil
}

// unmapped turns ::ffff:127.0.0.0/104 into 127.0.0.0/8, the form in which addresses are compared.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
