// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"encoding/json"
	"fmt"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// cloudEvent returns the event that wraps the body, in structured mode, and its content type.
func (p *plan) cloudEvent() (content, contentType string, err error) {
	event, err := p.event()
	if err != nil {
		return "", "", err
	}
	encoded, err := event.MarshalJSON()
	if err != nil {
		return "", "", invalid("work.http.cloudEvent is not valid: %s", plain(err))
	}
	return string(encoded), cloudevents.ApplicationCloudEventsJSON, nil
}

// event returns the CloudEvent of the call. Its id is the chain's idempotency key: each attempt sends the same event.
func (p *plan) event() (cloudevents.Event, error) {
	want := p.work.CloudEvent
	event := cloudevents.New()
	event.SetID(p.chain.IdempotencyKey)
	event.SetType(want.Type)
	event.SetSource(p.source())
	event.SetTime(p.eventTime)
	if want.Subject != "" {
		event.SetSubject(want.Subject)
	}
	if p.work.Body != nil {
		if err := setData(&event, want.DataContentType, *p.work.Body); err != nil {
			return event, err
		}
	}
	if err := event.Validate(); err != nil {
		return event, invalid("work.http.cloudEvent is not valid: %s", plain(err))
	}
	return event, nil
}

func (p *plan) source() string {
	if p.work.CloudEvent.Source != "" {
		return p.work.CloudEvent.Source
	}
	return fmt.Sprintf("/apis/%s/namespaces/%s/jobruns/%s", batchv1alpha1.GroupVersion, p.key.Namespace, p.chain.RootName)
}

// setData puts the body into the event: a JSON body as JSON, any other as text.
func setData(event *cloudevents.Event, contentType, body string) error {
	if contentType == "" {
		contentType = cloudevents.ApplicationJSON
	}
	event.SetDataContentType(contentType)
	if isJSON(event.DataMediaType()) && !json.Valid([]byte(body)) {
		return invalid("work.http.body is not valid JSON, as the event's dataContentType %s says", contentType)
	}
	event.DataEncoded, event.DataBase64 = []byte(body), false
	return nil
}

// isJSON names the media types whose data the event's encoding embeds as it stands.
func isJSON(mediaType string) bool {
	switch strings.ToLower(mediaType) {
	case cloudevents.ApplicationJSON, cloudevents.TextJSON, cloudevents.ApplicationCloudEventsJSON, cloudevents.ApplicationCloudEventsBatchJSON:
		return true
	default:
		return false
	}
}
