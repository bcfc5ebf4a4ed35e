// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	keyPrefix = "whsec_"
	// shortestKey and longestKey bound a key, in bytes, as the specification of Standard Webhooks does.
	shortestKey = 24
	longestKey  = 64
)

// SigningKey is a key for signatures of Standard Webhooks. It shows nothing of itself when it is printed.
type SigningKey struct{ bytes []byte }

// String hides the key.
func (SigningKey) String() string { return "(a signing key)" }

// GoString hides the key.
func (k SigningKey) GoString() string { return k.String() }

// ParseSigningKey reads a key as it is written in a Secret: "whsec_" and the base64 of 24 to 64 bytes, with white space around
// it or not. The error follows the name of the key, and tells nothing of its value.
func ParseSigningKey(written []byte) (SigningKey, error) {
	encoded, ok := bytes.CutPrefix(bytes.TrimSpace(written), []byte(keyPrefix))
	if !ok {
		return SigningKey{}, errors.New("does not begin with " + keyPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return SigningKey{}, fmt.Errorf("is not in base64 after %s", keyPrefix)
	}
	if len(key) < shortestKey || len(key) > longestKey {
		return SigningKey{}, fmt.Errorf("is a key of %d bytes, and has to be one of %d to %d", len(key), shortestKey, longestKey)
	}
	return SigningKey{key}, nil
}

// sign gives the request the headers of Standard Webhooks, with a signature by every key.
func sign(request *http.Request, id string, body []byte, keys []SigningKey, now time.Time) error {
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		signer, err := webhooks.NewWebhookRaw(key.bytes)
		if err != nil {
			return fmt.Errorf("signing: %w", err)
		}
		signature, err := signer.Sign(id, now, body)
		if err != nil {
			return fmt.Errorf("signing: %w", err)
		}
		signatures = append(signatures, signature)
	}
	request.Header.Set(webhooks.HeaderWebhookID, id)
	request.Header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if len(signatures) > 0 {
		request.Header.Set(webhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	}
	return nil
}
