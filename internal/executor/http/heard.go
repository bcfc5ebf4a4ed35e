// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"io"
	"net/http/httptrace"
	"net/textproto"
)

// listening makes the first byte of the response and every interim response (1xx) heard, before its headers are complete.
func (p *plan) listening(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: p.heard,
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			p.heard()
			return nil
		},
	})
}

// listened is a body of which every byte that comes is heard.
type listened struct {
	io.ReadCloser
	heard func()
}

func (l listened) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if n > 0 {
		l.heard()
	}
	return n, err
}
