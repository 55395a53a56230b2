# The console, which the binary carries.
FROM node:20.20.2-bookworm-slim AS console
WORKDIR /src/console
COPY console/package.json console/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY api/openapi.yaml /src/api/openapi.yaml
COPY console ./
RUN npm run build

# One static binary. The same image runs the API, the worker and the migration.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=console /src/console/dist ./console/dist
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/mediagate ./cmd/mediagate

# Alpine brings the certificates for the vendors' hosts, and wget for the
# health checks.
FROM alpine:3.24.1
RUN apk add --no-cache ca-certificates && adduser -D -H -u 65532 mediagate
COPY --from=build /out/mediagate /usr/local/bin/mediagate
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/mediagate"]
CMD ["all"]
