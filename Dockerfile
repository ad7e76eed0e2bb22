# Worker and starter of polyphony, static, on an empty image, as a user that is not root.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"

# From the rarely to the often changed, so that a change in our code rebuilds our code: the modules,
COPY go.mod go.sum ./
RUN go mod download
# the embedded Temporal server, minutes of compiling that depend on go.mod and this one package,
COPY worker/engine ./worker/engine
RUN go build ./worker/engine
# and the rest. The folders are named because the image needs no other.
COPY memory ./memory
COPY recall ./recall
COPY dispatch ./dispatch
COPY activities ./activities
COPY workflows ./workflows
COPY gateway ./gateway
COPY worker ./worker
COPY starter ./starter
RUN go build -ldflags="-s -w" -o /out/ ./worker ./starter && mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/worker /out/starter /
# A named volume that is mounted here for the first time takes over the owner.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENTRYPOINT ["/worker"]
CMD ["--data", "/data"]
