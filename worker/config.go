package main

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/polyphony-memory/polyphony/activities/judge"
	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall/embedding"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

const (
	// startTimeout and stopTimeout bound the whole start and stop. The stop is
	// longer than workerStopTimeout, so that the files close last.
	startTimeout = 2 * time.Minute
	stopTimeout  = 45 * time.Second
	// workerStopTimeout is how long running activities may take to end when
	// the worker stops.
	workerStopTimeout = 20 * time.Second
)

// Environment variables that give flags their defaults.
const (
	// envModel names the folder of the embedding model, envHub the base URL of
	// the hub that models are downloaded from.
	envModel = "POLYPHONY_MODEL_DIR"
	envHub   = "POLYPHONY_MODEL_HUB"
	// envHTTP and envHTTPHosts are the gateway's address and names.
	envHTTP      = "POLYPHONY_HTTP"
	envHTTPHosts = "POLYPHONY_HTTP_HOSTS"
	// envCodecOrigins are the Web UIs that may open sealed payloads.
	envCodecOrigins = "POLYPHONY_CODEC_ORIGINS"
)

// httpOff is the address of a worker without a gateway.
const httpOff = "off"

// The judge's settings. Its key is never a flag, which others could read.
const (
	envJudgeURL   = "POLYPHONY_JUDGE_URL"
	envJudgeModel = "POLYPHONY_JUDGE_MODEL"
	envJudgeKey   = "POLYPHONY_JUDGE_KEY"
)

// Config is what the worker is started with.
type Config struct {
	// Data is the data folder.
	Data string
	// Port and UIPort are the embedded engine's; see the flags.
	Port, UIPort int
	// Shards is what workspaces are spread over, Own which of them this worker
	// serves, like 0-7 or 0,3,5-6; empty is all.
	Shards int
	Own    string
	// Model is the folder of the embedding model, ModelHub the base URL of the
	// hub that models are downloaded from when somebody asks; empty is the usual
	// one.
	Model, ModelHub string
	// KeyFile is the file of the keys that seal payloads.
	KeyFile string
	// VectorIndex is what finds the nearest vectors; see the flag.
	VectorIndex string
	// HTTP is the gateway's address, host:port, empty for the loopback address
	// and a port of ours, or off. HTTPHosts are further names, comma-separated,
	// that it answers to.
	HTTP, HTTPHosts string
	// CodecOrigins are the origins of Temporal Web UIs, comma-separated, that
	// may have sealed payloads opened; the embedded one's is always among them.
	CodecOrigins string
	// Judge is the endpoint that is asked about suspected pairs; none without
	// a URL.
	Judge judge.Config
	// Tour plays a short story in a sample workspace once everything runs.
	Tour      bool
	LogLevel  string
	LogFormat string

	own    []int
	index  memory.VectorIndex
	level  slog.Level
	lookup func(string) (string, bool)
}

func (c *Config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.Data, "data", "", "data folder (default: $"+locate.EnvData+", else the platform's place for a user's data)")
	f.IntVar(&c.Port, "port", 0, "port of the embedded engine; 0 is 7233 or another when that is taken, -1 any free one")
	f.IntVar(&c.UIPort, "ui-port", 0, "serve Temporal's Web UI on this port; 0 does not, -1 takes any free one")
	f.IntVar(&c.Shards, "shards", 0, "number of shards that workspaces are spread over (default: $"+locate.EnvShards+", else 1)")
	f.StringVar(&c.Own, "own", "", "the shards that this worker serves, like 0-7 or 0,3 (default all)")
	f.StringVar(&c.Model, "model", "", "folder of the embedding model (default: $"+envModel+", else models/"+embedding.ModelName+" in the data folder, if it is there)")
	f.StringVar(&c.ModelHub, "model-hub", "", "base URL of the hub that models are downloaded from (default: $"+envHub+", else "+embedding.DefaultHub+")")
	f.StringVar(&c.KeyFile, "key-file", "", "keys that seal what the engine stores (default: $"+locate.EnvKeyFile+", else keys.json in the data folder, if it is there)")
	f.StringVar(&c.VectorIndex, "vector-index", "", "what finds the nearest vectors: memory keeps 64 bytes of each in memory, file asks sqlite-vec's index in the file, none leaves sqlite-vec alone; the answers are the same (default memory)")
	f.StringVar(&c.HTTP, "http", "", "address of the gateway for agents and people, host:port or off (default: $"+envHTTP+", else 127.0.0.1:"+strconv.Itoa(gateway.DefaultPort)+" or the next free port)")
	f.StringVar(&c.CodecOrigins, "codec-origins", "", "origins of Temporal Web UIs that may open sealed payloads, comma-separated (default: $"+envCodecOrigins+")")
	f.StringVar(&c.HTTPHosts, "http-hosts", "", "further host names that the gateway answers to, comma-separated (default: $"+envHTTPHosts+")")
	f.StringVar(&c.Judge.URL, "judge-url", "", "OpenAI-compatible endpoint that is asked about suspected pairs, like http://localhost:11434/v1 (default: $"+envJudgeURL+", else none)")
	f.StringVar(&c.Judge.Model, "judge-model", "", "the model that is asked there (default: $"+envJudgeModel+"; its key is $"+envJudgeKey+")")
	f.BoolVar(&c.Tour, "tour", false, "play a short story in a sample workspace, then keep running")
	f.StringVar(&c.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", "text", "text or json")
}

// owns reports whether a workspace is of a shard that this worker serves.
func (c *Config) owns(workspace string) bool {
	return slices.Contains(c.own, workflows.Shard(workspace, c.Shards))
}

// complete checks the settings and works out the rest.
func (c *Config) complete() (err error) {
	if c.Data, err = locate.DataFolder(c.Data, c.lookup); err != nil {
		return err
	}
	if err := c.level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return record.Errorf(record.InvalidArgument, "log-level", "the level is debug, info, warn or error")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		return record.Errorf(record.InvalidArgument, "log-format", "the format is text or json")
	}
	if c.Model == "" {
		c.Model, _ = c.lookup(envModel)
	}
	if c.ModelHub == "" {
		c.ModelHub, _ = c.lookup(envHub)
	}
	if c.index, err = memory.ParseVectorIndex(c.VectorIndex); err != nil {
		return err
	}
	if c.HTTP == "" {
		c.HTTP, _ = c.lookup(envHTTP)
	}
	if c.HTTPHosts == "" {
		c.HTTPHosts, _ = c.lookup(envHTTPHosts)
	}
	if c.CodecOrigins == "" {
		c.CodecOrigins, _ = c.lookup(envCodecOrigins)
	}
	if c.Judge.URL == "" {
		c.Judge.URL, _ = c.lookup(envJudgeURL)
	}
	if c.Judge.Model == "" {
		c.Judge.Model, _ = c.lookup(envJudgeModel)
	}
	c.Judge.Key, _ = c.lookup(envJudgeKey)
	for name, port := range map[string]int{"port": c.Port, "ui-port": c.UIPort} {
		if port < -1 || port > 65535 {
			return record.Errorf(record.InvalidArgument, name, "a port is 1 to 65535, 0 or -1")
		}
	}
	if c.Shards == 0 {
		if c.Shards, err = locate.EnvironmentShards(c.lookup); err != nil {
			return err
		}
	}
	if c.Shards < 1 || c.Shards > locate.MaxShards {
		return record.Errorf(record.InvalidArgument, "shards", "the shards are a number of 1 to %d", locate.MaxShards)
	}
	c.own, err = locate.ParseShards("own", c.Own, c.Shards)
	return err
}
