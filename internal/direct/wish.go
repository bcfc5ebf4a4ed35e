// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Headers of a request.
const (
	// HeaderType names the type of the reservation. Default: spec.direct.type of the queue.
	HeaderType = "Reprise-Type"
	// HeaderClaims lists the claims of the reservation, as in "ollama=1, remote=2". Default: spec.direct.claims of the queue.
	HeaderClaims = "Reprise-Claims"
	// HeaderIdempotencyKey makes the same request of the same user use the same reservation.
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderReservation names the reservation, to the upstream and to the client.
	HeaderReservation = "Reprise-Reservation"
	// headerPrefix is that of the headers which are between the client and us.
	headerPrefix = "Reprise-"
)

const (
	maxClaims     = 16
	maxClaimCount = 100000
	maxKeyBytes   = 255
)

// wish is what a request wants of its queue.
type wish struct {
	typeName string
	claims   []batchv1alpha1.ResourceClaim
	// key is its Idempotency-Key, empty for none.
	key string
}

// wished reads what the request wants; what it does not say is what the queue says. An empty header is none at all.
func wished(h http.Header, d *batchv1alpha1.QueueDirect) (wish, *problem) {
	w := wish{typeName: d.Type, claims: d.Claims}
	var p *problem
	if values := h.Values(HeaderType); len(values) > 0 {
		if w.typeName, p = readType(values); p != nil {
			return wish{}, p
		}
	}
	if values := h.Values(HeaderClaims); len(values) > 0 {
		if w.claims, p = readClaims(strings.Join(values, ",")); p != nil {
			return wish{}, p
		}
	}
	w.key, p = readKey(h)
	return w, p
}

func readType(values []string) (string, *problem) {
	name := strings.TrimSpace(values[0])
	if len(values) > 1 || (name != "" && !isLabel(name)) {
		return "", refuse(http.StatusBadRequest, "InvalidType", "the header %s must hold one name of a-z, 0-9 and '-'", HeaderType)
	}
	return name, nil
}

func readClaims(text string) ([]batchv1alpha1.ResourceClaim, *problem) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var claims []batchv1alpha1.ResourceClaim
	for part := range strings.SplitSeq(text, ",") {
		c, ok := readClaim(part)
		known := slices.ContainsFunc(claims, func(other batchv1alpha1.ResourceClaim) bool { return other.Name == c.Name })
		if !ok || known || len(claims) == maxClaims {
			return nil, refuse(http.StatusBadRequest, "InvalidClaims",
				"the header %s must look like \"ollama=1, remote=2\": each resource once, with a count of 1 to %d, at most %d of them", HeaderClaims, maxClaimCount, maxClaims)
		}
		claims = append(claims, c)
	}
	return claims, nil
}

func readClaim(text string) (batchv1alpha1.ResourceClaim, bool) {
	name, number, counted := strings.Cut(text, "=")
	c := batchv1alpha1.ResourceClaim{Name: strings.TrimSpace(name), Count: 1}
	if counted {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
		if err != nil || n < 1 || n > maxClaimCount {
			return c, false
		}
		c.Count = int32(n)
	}
	return c, isLabel(c.Name)
}

// readKey returns the Idempotency-Key, empty for none.
func readKey(h http.Header) (string, *problem) {
	values := h.Values(HeaderIdempotencyKey)
	if len(values) == 0 {
		return "", nil
	}
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(values) > 1 || values[0] == "" || len(values[0]) > maxKeyBytes || strings.ContainsFunc(values[0], unprintable) {
		return "", refuse(http.StatusBadRequest, "InvalidIdempotencyKey", "send the header %s once, with 1 to %d printable characters of ASCII", HeaderIdempotencyKey, maxKeyBytes)
	}
	return values[0], nil
}
