MCP=http://127.0.0.1:8080/mcp
post() { curl -sS "$MCP" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "$@"; }

SESSION=$(post -D- -o/dev/null -d '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}' | tr -d '\r' | sed -n 's/^mcp-session-id: //Ip')
post -H "Mcp-Session-Id: $SESSION" -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
post -H "Mcp-Session-Id: $SESSION" -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'; echo
post -H "Mcp-Session-Id: $SESSION" -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"example___weather","arguments":{"city":"Kiel"}}}'; echo
curl -sS -X DELETE "$MCP" -H "Mcp-Session-Id: $SESSION" -o/dev/null -w 'the session ended with %{http_code}\n'
