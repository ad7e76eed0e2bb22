package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

// pollRate is how often a second a queue of the one history shard is read. The server's 20 is meant for thousands of
// shards; with one, every step that goes through a queue would wait up to 50 ms for its turn.
const pollRate = 2000

// persistenceRate lifts the limits that protect a shared database; the file protects itself by having one writer.
const persistenceRate = 50_000

// cachedRuns is how many runs the server keeps in memory, open or closed, for an hour each. Ours are closed after
// milliseconds, and one takes about 23 kB: at the server's default of 128,000 a worker that is called 35 times a second
// would grow by 3 GB.
const cachedRuns = 1024

// dynamicConfig is what differs from the server's defaults.
func dynamicConfig() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   pollRate,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      pollRate,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollRate,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   pollRate,

		dynamicconfig.FrontendPersistenceMaxQPS.Key():    persistenceRate,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():     persistenceRate,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():    persistenceRate,
		dynamicconfig.WorkerPersistenceMaxQPS.Key():      persistenceRate,
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): cachedRuns,

		// Listing runs for a person is no load here; the default is ten calls a second.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 200,

		// One host has no use for task queues in four parts that forward to one another: BenchmarkRoundTrip has its
		// 95th percentile at 14 ms with one part and at 88 with four.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Search attributes and endpoints are usable as soon as the call that made them returns.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		dynamicconfig.ForceNexusEndpointRefreshOnRead.Key():         true,

		// Nothing leaves this machine that its owner did not send.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}

// Names of the two stores in the server's own configuration.
const (
	mainStore       = "main"
	visibilityStore = "visibility"
)

// newServer wires the server's four services on loopback; nothing runs yet.
func newServer(cfg Config, p ports, database *Database, logger log.Logger) (temporal.Server, error) {
	address := func(port int) string { return net.JoinHostPort(cfg.Host, strconv.Itoa(port)) }
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: cfg.Host}}
	}
	disabled := "disabled"
	serverConfig := &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: cfg.Host},
		},
		Persistence: config.Persistence{
			DefaultStore:     mainStore,
			VisibilityStore:  visibilityStore,
			NumHistoryShards: database.HistoryShards,
			DataStores: map[string]config.DataStore{
				mainStore: {SQL: database.Main}, visibilityStore: {SQL: database.Visibility},
			},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address(p.frontend)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend),
			string(primitives.HistoryService):  service(p.history),
			string(primitives.MatchingService): service(p.matching),
			string(primitives.WorkerService):   service(p.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: disabled},
			Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
		PublicClient: config.PublicClient{HostPort: address(p.frontend)},
	}
	dynamic := dynamicConfig()
	maps.Copy(dynamic, cfg.dynamic)
	return temporal.NewServer(
		temporal.WithConfig(serverConfig),
		temporal.ForServices(temporal.DefaultServices),
		// Known hosts need no gossip, no port for it and no time to agree.
		temporal.WithStaticHosts(map[primitives.ServiceName]static.Hosts{
			primitives.FrontendService: static.SingleLocalHost(address(p.frontend)),
			primitives.HistoryService:  static.SingleLocalHost(address(p.history)),
			primitives.MatchingService: static.SingleLocalHost(address(p.matching)),
			primitives.WorkerService:   static.SingleLocalHost(address(p.worker)),
		}),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporal.WithDynamicConfigClient(dynamic),
	)
}

// await returns when the frontend answers, knows the namespace with its search attributes and reaches the history
// shard: when the next call of a client will be served.
func (e *Engine) await(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(e.failed.ctx, func() { cancel(context.Cause(e.failed.ctx)) })
	defer stop()

	conn, err := grpc.NewClient(e.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	defer func() { _ = conn.Close() }()
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	wait := grpc.WaitForReady(true)

	if err := until(ctx, func() error {
		_, err := frontend.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}, wait)
		return err
	}); err != nil {
		return fmt.Errorf("engine: wait for the frontend: %w", err)
	}
	if cfg.Database != nil {
		if err := until(ctx, func() error { return registerNamespace(ctx, frontend, cfg) }); err != nil {
			return fmt.Errorf("engine: register namespace %q: %w", cfg.Namespace, err)
		}
	}
	if err := until(ctx, func() error {
		_, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: cfg.Namespace}, wait)
		return err
	}); err != nil {
		return fmt.Errorf("engine: wait for namespace %q: %w", cfg.Namespace, err)
	}
	if err := addSearchAttributes(ctx, operatorservice.NewOperatorServiceClient(conn), cfg); err != nil {
		return err
	}
	// Not finding a workflow takes the shard that would hold it.
	if err := until(ctx, func() error {
		_, err := frontend.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: cfg.Namespace,
			Execution: &commonpb.WorkflowExecution{WorkflowId: "polyphony-engine-start"},
		}, wait)
		if _, ok := errors.AsType[*serviceerror.NotFound](fromStatus(err)); ok {
			return nil
		}
		return err
	}); err != nil {
		return fmt.Errorf("engine: wait for the history shard: %w", err)
	}
	return nil
}

// registerNamespace makes the namespace unless it exists. A file has it before the server starts.
func registerNamespace(ctx context.Context, frontend workflowservice.WorkflowServiceClient, cfg Config) error {
	_, err := frontend.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: cfg.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(cfg.Retention),
	})
	if _, ok := errors.AsType[*serviceerror.NamespaceAlreadyExists](fromStatus(err)); ok {
		return nil
	}
	return err
}

// addSearchAttributes registers those that a namespace made by an earlier version lacks.
func addSearchAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, cfg Config) error {
	have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: cfg.Namespace})
	if err != nil {
		return fmt.Errorf("engine: search attributes: %w", err)
	}
	missing := maps.Clone(cfg.SearchAttributes)
	for name, kind := range have.GetCustomAttributes() {
		if want, ok := missing[name]; ok && want != kind {
			return fmt.Errorf("engine: search attribute %s is a %v in namespace %q, not a %v", name, kind, cfg.Namespace, want)
		}
		delete(missing, name)
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace:        cfg.Namespace,
		SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("engine: add search attributes: %w", err)
	}
	return nil
}

// until calls try until it succeeds, and returns its last error when ctx ends first.
func until(ctx context.Context, try func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
