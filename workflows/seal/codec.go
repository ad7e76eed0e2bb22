package seal

import (
	"context"
	"encoding/binary"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Metadata of a sealed payload. The workflow id stands there for those who open
// a payload without knowing where it came from, as the Web UI's endpoint does.
const (
	encoding         = "binary/encrypted"
	metadataKey      = "polyphony-key"
	metadataWorkflow = "polyphony-workflow"
)

// errSealed is in the chain of every error of opening.
var errSealed = errors.New("the payload stays sealed")

// bound starts the additional data of every seal.
const bound = "polyphony payload 1"

// Configure makes a connection seal what it sends and open what it receives. A
// ring without keys sends in the clear and says by name what it lacks when it
// meets a sealed payload. Error messages and stack traces are sealed too.
func Configure(opts *client.Options, r *Ring) {
	opts.DataConverter = &dataConverter{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), NewCodec(r))}
	opts.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: opts.DataConverter, EncodeCommonAttributes: r.Seals(),
	})
}

// Codec seals and opens payloads. Without a workflow id, which the SDK gives
// through WithSerializationContext, it opens a payload of any workflow.
type Codec struct {
	ring *Ring
	// workflow is the id that payloads must be bound to; known is false
	// outside of any workflow.
	workflow string
	known    bool
}

// NewCodec returns the codec of a ring.
func NewCodec(r *Ring) *Codec { return &Codec{ring: r} }

// WithSerializationContext binds the codec to the workflow that the payloads
// are of.
func (c *Codec) WithSerializationContext(ctx converter.SerializationContext) converter.PayloadCodec {
	switch ctx := ctx.(type) {
	case converter.WorkflowSerializationContext:
		return &Codec{ring: c.ring, workflow: ctx.WorkflowID, known: true}
	case converter.ActivitySerializationContext:
		return &Codec{ring: c.ring, workflow: ctx.WorkflowID, known: true}
	}
	return c
}

// Encode seals payloads; without keys it leaves them as they are.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	key := c.ring.sealing()
	if key == nil {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, record.Wrap(record.Unavailable, err, "a payload cannot be sealed")
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encoding), metadataKey: []byte(key.ID), metadataWorkflow: []byte(c.workflow),
			},
			// The nonce is random and stands before the text.
			Data: key.aead.Seal(nil, nil, plain, additional(key.ID, c.workflow)),
		}
	}
	return out, nil
}

// Decode opens sealed payloads and passes others: runs that began before there
// was a key go on.
//
// Errors: Unavailable (no such key; changed; of another workflow).
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = c.open(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Codec) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
		return p, nil
	}
	id, workflowID := string(p.GetMetadata()[metadataKey]), string(p.GetMetadata()[metadataWorkflow])
	if c.known && workflowID != c.workflow {
		return nil, record.Wrap(record.Unavailable, errSealed, "a sealed payload belongs to another workflow")
	}
	key := c.ring.opening(id)
	if key == nil {
		return nil, record.Wrap(record.Unavailable, errSealed, "a payload is sealed with the key %.32q, which this program does not have; give it the worker's key file", id)
	}
	plain, err := key.aead.Open(nil, nil, p.GetData(), additional(id, workflowID))
	if err != nil {
		return nil, record.Wrap(record.Unavailable, errors.Join(errSealed, err), "a sealed payload was changed, or its key")
	}
	var out commonpb.Payload
	if err := proto.Unmarshal(plain, &out); err != nil {
		return nil, record.Wrap(record.Unavailable, errors.Join(errSealed, err), "a sealed payload does not hold a payload")
	}
	return &out, nil
}

// additional is what a seal is bound to beside the text: each part with its
// length, so that two different pairs never make the same bytes.
func additional(keyID, workflowID string) []byte {
	b := []byte(bound)
	for _, s := range []string{keyID, workflowID} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// dataConverter is the SDK's, except that workflow code never sees an error of
// opening: it would end the run. A panic there fails the task only, which the
// engine tries again until the key is back; the SDK has no gentler way.
type dataConverter struct {
	converter.DataConverter
	inWorkflow bool
}

// WithWorkflowContext marks the converter as one of workflow code.
func (d *dataConverter) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return &dataConverter{d.DataConverter, true}
}

// WithContext binds to the workflow of an activity: the SDK tells it of a
// normal activity by WithSerializationContext too, of a local one only here.
func (d *dataConverter) WithContext(ctx context.Context) converter.DataConverter {
	if !activity.IsActivity(ctx) {
		return d
	}
	info := activity.GetInfo(ctx)
	return d.WithSerializationContext(converter.ActivitySerializationContext{
		Namespace: info.Namespace, WorkflowID: info.WorkflowExecution.ID,
		ActivityType: info.ActivityType.Name, TaskQueue: info.TaskQueue, IsLocal: info.IsLocalActivity,
	})
}

// WithSerializationContext passes the workflow's id to the codec.
func (d *dataConverter) WithSerializationContext(ctx converter.SerializationContext) converter.DataConverter {
	return &dataConverter{converter.WithDataConverterSerializationContext(d.DataConverter, ctx), d.inWorkflow}
}

// FromPayload opens and decodes one payload.
func (d *dataConverter) FromPayload(p *commonpb.Payload, to any) error {
	return d.hold(d.DataConverter.FromPayload(p, to))
}

// FromPayloads opens and decodes payloads.
func (d *dataConverter) FromPayloads(p *commonpb.Payloads, to ...any) error {
	return d.hold(d.DataConverter.FromPayloads(p, to...))
}

func (d *dataConverter) hold(err error) error {
	if d.inWorkflow && errors.Is(err, errSealed) {
		panic(err)
	}
	return err
}
