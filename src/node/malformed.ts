/**
 * Requests that are none, or that say in two places whom they ask. Node.js answers the first kind with a bare status
 * and takes the second; here all are answered with a problem, as any other refusal is.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerRaw, type UpgradeRefusal } from '../adapters/ws-router.ts'
import type { StoreErrorCode } from '../base/errors.ts'
import { problemContentType, problemPage } from './refusals.ts'

/** A refusal of a request before the node looks at it. */
export interface Refusal {
  readonly status: number
  readonly code: StoreErrorCode
  readonly text: string
}

const hostIsWanted = 'a request of HTTP/1.1 has one Host header'

/** The fault in the head of a request that the parser took; undefined: none. */
export function headRefusal({
  url = '',
  method,
  headers,
  rawHeaders,
  httpVersion,
}: Pick<IncomingMessage, 'url' | 'method' | 'headers' | 'rawHeaders' | 'httpVersion'>):
  Refusal | undefined {
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    const given = JSON.stringify(coding.slice(0, 80))
    const text = `send the body as it is: the header Transfer-Encoding says ${given}, not chunked alone`
    return { status: 501, code: 'invalid', text }
  }
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
  if (hosts.length > 1) return invalid(`${hostIsWanted}, and this one has ${hosts.length}`)
  if (hosts.length === 0 && httpVersion === '1.1') {
    return invalid(`${hostIsWanted}, and this one has none`)
  }
  // The authority of a tunnel; this server opens none.
  if (url.startsWith('/') || method === 'CONNECT') return undefined
  const authority = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]
  const target = JSON.stringify(url.slice(0, 200))
  if (authority === undefined)
    return invalid(`the target of a request begins with /, not ${target}`)
  if (authority.toLowerCase() === headers.host?.toLowerCase()) return undefined
  const host = JSON.stringify((headers.host ?? '').slice(0, 200))
  return invalid(
    `the request asks for ${target} and names another host, ${host}, in its Host header`,
  )
}

function invalid(text: string): Refusal {
  return { status: 400, code: 'invalid', text }
}

/**
 * Answers requests that the parser of Node.js refuses, and those that do not come whole in time. `count` is
 * called for each.
 */
export function answerMalformed(
  server: Server,
  headBytesMax: number,
  count: () => void,
): Malformed {
  const atWork = new WeakMap<Duplex, Exchange>()
  const ending = new WeakSet<Duplex>()
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // Errors of the network, and handshakes of TLS that fail, come here too: they have no request to answer.
    const isOfHttp = /^(?:HPE_|ERR_HTTP_)/.test(error.code ?? '')
    if (!isOfHttp || !socket.writable) return void socket.destroy()
    const exchange = atWork.get(socket)
    if (ending.has(socket)) return
    if (isAnswered(exchange)) {
      ending.add(socket)
      return endAfter(exchange, socket)
    }
    count()
    const { status, code, text } = parserRefusal(error, headBytesMax)
    const body = problemPage(status, code, text)
    answerRaw(socket, { status, contentType: problemContentType, body })
  })
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    count()
    const expected = JSON.stringify((request.headers.expect ?? '').slice(0, 80))
    const text = `nothing is known of the expectation ${expected}, only of 100-continue`
    refuseRequest(response, { status: 417, code: 'invalid', text })
  })
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    count()
    socket.on('error', () => socket.destroy())
    answerRaw(socket, tunnelRefusal)
  })
  return { begin: (request, response) => void atWork.set(request.socket, { request, response }) }
}

const tunnelRefusal: UpgradeRefusal = {
  ...{ status: 405, contentType: problemContentType },
  body: problemPage(
    405,
    'invalid',
    'this is no proxy, and CONNECT opens no tunnel here; send the request itself',
  ),
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Whether the open exchange keeps its own answer: its request is whole, so that the fault lies behind it, or
 * its answer has begun. A refusal would pass for that answer.
 */
function isAnswered(exchange: Exchange | undefined): exchange is Exchange {
  if (exchange === undefined || exchange.response.writableFinished) return false
  return exchange.request.complete || exchange.response.headersSent
}

/**
 * The request that is at work gets its own answer, and the connection ends after that: the bytes behind it
 * are no request.
 */
function endAfter({ response }: Exchange, socket: Duplex): void {
  // A socket that is destroyed with bytes unread resets its connection, and the answer may be lost with it.
  response.once('close', () => socket.end())
  response.shouldKeepAlive = false
}

export interface Malformed {
  /** The request that is answered over a connection from now on. */
  begin(request: IncomingMessage, response: ServerResponse): void
}

/** Answers a request that the parser took, and ends its connection. */
export function refuseRequest(response: ServerResponse, { status, code, text }: Refusal): void {
  const body = problemPage(status, code, text)
  response.writeHead(status, {
    'content-type': problemContentType,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  })
  response.end(body)
}

function parserRefusal({ code, message }: NodeJS.ErrnoException, headBytesMax: number): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW': {
      const text = `the head of a request has at most ${headBytesMax} bytes`
      return { status: 431, code: 'too-large', text }
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, code: 'too-large', text: 'the extensions of a chunk are too long' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'timeout', text: 'the request did not come in time' }
    default:
      return invalid(`this is no request of HTTP/1.1: ${message.replace(/^Parse Error: /, '')}`)
  }
}
