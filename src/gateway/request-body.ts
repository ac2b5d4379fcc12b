/** Request bodies: read up to a bound and no further, then as JSON without loss. */
import { StoreError } from '../base/errors.ts'
import type { Json } from '../cells/body.ts'
import { parseJsonText } from '../base/json-text.ts'
import { problem } from '../base/problem.ts'
import { HttpProblem, refuse } from './problems.ts'

/** So much more is read and thrown away: many senders listen for no answer while they send. */
const discardBytesMax: number = 16 * 1024 * 1024

export interface BodyLimit {
  /** Its name among the constants that users can read. */
  readonly name: string
  readonly bytesMax: number
}

/** Bytes of request bodies that are at work, together: a request above the bound is refused. */
export class BodyRoom {
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The share of one request. */
  open(): BodyShare {
    let own = 0
    return {
      take: (bytes) => {
        if (this.#bytes + bytes > this.#bytesMax) throw tooMany
        this.#bytes += bytes
        own += bytes
      },
      close: () => {
        this.#bytes -= own
        own = 0
      },
    }
  }
}

export interface BodyShare {
  /** Throws `overloaded` when there is no room for so many bytes more. */
  take(bytes: number): void
  /** Gives back what was taken. */
  close(): void
}

const tooMany = new StoreError(
  'overloaded',
  'the bodies of the requests at work here are too large together; try again later',
)

interface Sent {
  readonly context: { readonly req: { readonly raw: Request } }
  readonly room: BodyShare
}

export async function readJson({ context, room }: Sent, limit: BodyLimit): Promise<Json> {
  requireUnpacked(context.req.raw)
  const bytes = await readBounded(context.req.raw, limit, room)
  if (bytes.length === 0) return refuse('the request has no body; it must be JSON')
  const parsed = parseJsonText(decodeUtf8(bytes))
  return parsed.ok ? parsed.value : refuse(`the body is refused: ${parsed.reason}`)
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Replacing what is malformed would store something else than was sent.
    return refuse('the body is refused: it is not UTF-8')
  }
}

async function readBounded(
  request: Request,
  limit: BodyLimit,
  room: BodyShare,
): Promise<Uint8Array> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > limit.bytesMax) throw tooLarge(limit, declared)
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const chunk = await nextChunk(reader)
    if (chunk === undefined) break
    bytes += chunk.length
    if (bytes <= limit.bytesMax) {
      room.take(chunk.length)
      chunks.push(chunk)
    } else if (bytes > limit.bytesMax + discardBytesMax) {
      // That the sender's connection breaks with it is no error of ours.
      reader.cancel().catch(() => undefined)
      break
    }
  }
  if (bytes > limit.bytesMax) throw tooLarge(limit, bytes)
  return Buffer.concat(chunks)
}

async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Uint8Array | undefined> {
  try {
    return (await reader.read()).value
  } catch {
    // The sender broke off; nobody is left to read the answer, but the request must end.
    return refuse('the body ended before it was complete')
  }
}

function tooLarge(limit: BodyLimit, actual: number): HttpProblem {
  const { name, bytesMax } = limit
  const message = `the body is larger than ${bytesMax} bytes`
  return new HttpProblem(
    problem('too-large', message, { limit: name, limitValue: bytesMax, actual }),
  )
}

/** A body is JSON in UTF-8 as it is: neither packed nor in another encoding. */
function requireUnpacked({ headers }: Request): void {
  const coding = headers.get('content-encoding')?.trim() ?? ''
  if (coding !== '' && coding.toLowerCase() !== 'identity') {
    const message = `send the body as it is, not packed: the header Content-Encoding says ${quoted(coding)}`
    throw new HttpProblem(problem('invalid', message), 415, { 'accept-encoding': 'identity' })
  }
  const type = headers.get('content-type') ?? ''
  const charsets = [...type.matchAll(/;\s*charset\s*=\s*"?([^\s;"]*)/gi)].map(([, one = '']) => one)
  const charset = charsets.find((one) => !/^utf-?8$/i.test(one))
  if (charset === undefined) return
  const message = `send the body in UTF-8: the header Content-Type says the charset ${quoted(charset)}`
  throw new HttpProblem(problem('invalid', message), 415)
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}

/** JSON that the browser of a page from elsewhere cannot send without asking first. */
export function requireJson(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) return
  const message = "send it as JSON, with the header 'content-type: application/json'"
  throw new HttpProblem(problem('invalid', message), 415)
}
