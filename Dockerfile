# Worker and starter of polyphony for a cluster, static, on an empty image, as a user that is not root. The tag cluster
# leaves the embedded Temporal server out: a fifth of the size, and nothing of it to compile.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"

# The modules first: a change in our code does not fetch them again.
COPY go.mod go.sum ./
RUN go mod download
# The folders are named because the image needs no other.
COPY memory ./memory
COPY recall ./recall
COPY dispatch ./dispatch
COPY activities ./activities
COPY workflows ./workflows
COPY gateway ./gateway
COPY worker ./worker
COPY starter ./starter
RUN go build -tags cluster -ldflags="-s -w" -o /out/ ./worker ./starter && mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/worker /out/starter /
# A named volume that is mounted here for the first time takes over the owner.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENTRYPOINT ["/worker"]
CMD ["--data", "/data"]
