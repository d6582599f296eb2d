-- wrk script: send the requests of a file in turn. One body a line; the file and the operation come after "--".
local requests = {}
local at = 0

function init(args)
  local headers = {
    ["Content-Type"] = "application/x-amz-json-1.0",
    ["X-Amz-Target"] = "DynamoDB_20120810." .. args[2],
    ["X-Amz-Date"] = "20260101T000000Z",
    ["Authorization"] = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
      .. "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=00",
  }
  for line in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", "/", headers, line)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, requests)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read
    + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration, bad,
    latency:percentile(50), latency:percentile(99)))
end
