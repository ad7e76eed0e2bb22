package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema"
	v12 "go.temporal.io/server/schema/postgresql/v12"
)

// The databases, as docker-compose.yml names them. The first is what PostgreSQL
// has of itself, to make the others from.
const (
	firstDatabase      = "postgres"
	mainDatabase       = "temporal"
	visibilityDatabase = "temporal_visibility"
)

// server is a PostgreSQL server.
type server struct{ address, user, password string }

// database is how the Temporal server connects to one of its databases.
func (s server) database(name string) *config.SQL {
	return &config.SQL{
		PluginName: postgresql.PluginName, ConnectProtocol: "tcp", ConnectAddr: s.address,
		User: s.user, Password: s.password, DatabaseName: name,
		MaxConns: 20, MaxIdleConns: 20, MaxConnLifetime: time.Hour,
	}
}

// setUp makes the databases with the schemas of this version of the server; it
// fails when they are there.
func (s server) setUp() error {
	for _, d := range []struct{ name, schema, version string }{
		{mainDatabase, "temporal", v12.Version},
		{visibilityDatabase, "visibility", v12.VisibilityVersion},
	} {
		err := s.admin(firstDatabase, func(db sqlplugin.AdminDB) error { return db.CreateDatabase(d.name) })
		if err == nil {
			err = s.admin(d.name, func(db sqlplugin.AdminDB) error { return apply(db, d.name, d.schema, d.version) })
		}
		if err != nil {
			return fmt.Errorf("database %s: %w", d.name, err)
		}
	}
	return nil
}

// admin runs f on one of the databases.
func (s server) admin(name string, f func(sqlplugin.AdminDB) error) error {
	db, err := sql.NewSQLAdminDB(sqlplugin.DbKindUnknown, s.database(name), resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// apply runs the statements of a schema, which come with the server's module,
// and notes its version.
func apply(db sqlplugin.AdminDB, name, kind, version string) error {
	file, err := schema.Assets().Open(path.Join("postgresql/v12", kind, "schema.sql"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	statements, err := persistence.LoadAndSplitQueryFromReaders([]io.Reader{file})
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if err := db.CreateSchemaVersionTables(); err != nil {
		return err
	}
	return db.UpdateSchemaVersion(name, version, version)
}
