// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestAddressesThatOnlyTheManagerCanReachAreRefused(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1":              "loopback",
		"127.255.0.3":            "loopback",
		"::1":                    "loopback",
		"::ffff:127.0.0.1":       "loopback",
		"::127.0.0.1":            "loopback",
		"::ffff:0:127.0.0.1":     "loopback",
		"64:ff9b::7f00:1":        "loopback",
		"2002:7f00:1::1":         "loopback",
		"0.0.0.0":                "unspecified",
		"0.1.2.3":                "unspecified",
		"::":                     "unspecified",
		"::ffff:0.0.0.0":         "unspecified",
		"169.254.169.254":        "link-local",
		"169.254.170.2":          "link-local",
		"::ffff:169.254.169.254": "link-local",
		"64:ff9b::a9fe:a9fe":     "link-local",
		"2002:a9fe:a9fe::":       "link-local",
		"fe80::1":                "link-local",
		"fe80::1%eth0":           "link-local",
		"fe80::a9fe:a9fe":        "link-local",
		"224.0.0.1":              "multicast",
		"255.255.255.255":        "broadcast",
		"ff02::1":                "multicast",
		"ff02::1%eth0":           "multicast",
		"100.100.100.200":        "metadata",
		"168.63.129.16":          "metadata",
		"192.0.0.192":            "metadata",
		"::ffff:168.63.129.16":   "metadata",
		"64:ff9b::6464:64c8":     "metadata",
		"fd00:ec2::254":          "metadata",
		"fd00:ec2::254%eth0":     "metadata",
		"fd00:ec2::23":           "metadata",
		"fd20:ce::254":           "metadata",
		"fd00:c1::a9fe:a9fe":     "metadata",
		"fd00:42::42":            "metadata",
		"64:ff9b:1::a00:1":       "locally translated",
		"2001::1":                "tunnelled",
	} {
		t.Run(address, func(t *testing.T) {
			if got := (rule{}).kind(netip.MustParseAddr(address)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAddressesOfClusterServicesAndOfTheInternetAreAllowed(t *testing.T) {
	for _, address := range []string{
		"10.0.0.1", "10.96.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
		"100.64.0.1", "100.100.100.201", "192.0.0.193", "168.63.129.17", "198.18.0.1", "240.0.0.1",
		"fc00::1", "fd12:3456::1", "fd00:ec3::254", "1.1.1.1", "203.0.113.9", "2606:4700::1111", "2001:db8::1", "2002:a00:1::1",
	} {
		t.Run(address, func(t *testing.T) {
			if got := (rule{}).kind(netip.MustParseAddr(address)); got != "" {
				t.Errorf("refused as %q", got)
			}
		})
	}
}

func TestTheFlagLiftsTheRuleForItsRangesAlone(t *testing.T) {
	allowed, err := ParsePrefixes("127.0.0.0/8, fd00:ec2::254/128")
	if err != nil {
		t.Fatal(err)
	}
	r := rule{allowed: allowed}
	for address, want := range map[string]string{
		"127.0.0.1":        "",
		"::ffff:127.0.0.1": "",
		"fd00:ec2::254":    "",
		"fd00:ec2::23":     "metadata",
		"::1":              "loopback",
		"169.254.169.254":  "link-local",
	} {
		if got := r.kind(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestEverySpellingOfAnIPv4AddressIsJudgedAsThatAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b [4]byte
		copy(b[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		if rapid.Bool().Draw(t, "link-local") {
			b[0], b[1] = 169, 254
		}
		plain := netip.AddrFrom4(b)
		want := (rule{}).kind(plain)
		for _, e := range embedding {
			carrier := e.prefix.Addr().As16()
			copy(carrier[e.offset:], b[:])
			form := netip.AddrFrom16(carrier)
			got := (rule{}).kind(form)
			if want != "" && got == "" || want == "" && got != "" {
				t.Fatalf("%s is %q, but as %s it is %q", plain, want, form, got)
			}
		}
	})
}

func TestPrefixesOfTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		value, want string
		fails       bool
	}{
		"empty means none":                      {"", "", false},
		"host bits are ignored":                 {"127.0.0.1/8", "127.0.0.0/8", false},
		"an IPv4-mapped range is an IPv4 range": {"::ffff:127.0.0.0/104", "127.0.0.0/8", false},
		"an address alone is not a range":       {"127.0.0.1", "", true},
		"a name is not a range":                 {"10.0.0.0/8,localhost", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePrefixes(c.value)
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			text := ""
			for _, p := range got {
				text += p.String()
			}
			if text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
