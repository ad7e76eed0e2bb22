#!/usr/bin/env bash
# Puts the libraries of the pages, as package-lock.json pins them, into
# assets/vendor, with their licences and the hashes that a test checks. Run it
# after a change of package.json; what it writes is committed.
set -euo pipefail
cd "$(dirname "$0")"

npm ci --ignore-scripts --no-audit --no-fund
rm -rf assets/vendor
mkdir -p assets/vendor
cp node_modules/htmx.org/dist/htmx.min.js assets/vendor/htmx.min.js
cp node_modules/htmx.org/LICENSE assets/vendor/htmx.LICENSE
cp node_modules/cytoscape/dist/cytoscape.min.js assets/vendor/cytoscape.min.js
cp node_modules/cytoscape/LICENSE assets/vendor/cytoscape.LICENSE
cd assets/vendor
sha256sum htmx.min.js htmx.LICENSE cytoscape.min.js cytoscape.LICENSE >SHA256SUMS
