// Package browser tests the memory browser's pages in a real browser, headless
// Chromium, over the gateway and a real store. Changes run their workflows in
// Temporal's test environment.
//
// It must never hold what a handler's test can show.
package browser
