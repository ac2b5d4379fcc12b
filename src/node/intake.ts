/**
 * Requests of client links on their way to be taken up: in the order in which they came, several in one turn
 * or, where they are many or much is under way, over several turns. Waiting requests are kept as the bytes
 * that came. The node does not read from a link of which too many bytes wait, until fewer do.
 *
 * COST-2  The node takes up the requests of each client in their order, each once. The bytes that wait are
 *         bounded: above the bound the node does not read the link, and its client waits.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'
import type { Line, Slices } from '../ports/slices.ts'
import type {
  CancelRequest,
  ClientFrame,
  MalformedRequest,
  Request,
  RequestSource,
} from '../wire/client/client-message.ts'
import { computeIntakeWork } from './request-cost.ts'

export interface IntakeLimits {
  /** Bytes of requests that wait of one client, and of all: above it nothing more is read. */
  readonly clientBytesMax: number
  readonly bytesMax: number
}

export const defaultIntakeLimits: IntakeLimits = {
  clientBytesMax: 1024 * 1024,
  bytesMax: 64 * 1024 * 1024,
}

export interface IntakePorts {
  readonly slices: Slices
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** `sinceMs`: when it came. */
  take(client: Endpoint, request: Request, sinceMs: number): void
  /** Called at once: a cancellation must not wait behind other requests. */
  cancel(client: Endpoint, request: CancelRequest): void
  refuse(client: Endpoint, malformed: MalformedRequest): void
  /** Reports a bug; the requests behind this one are taken up all the same. */
  onBug(client: Endpoint, request: Request, error: unknown): void
  /** Stops reading from a link, and goes on; absent: it cannot be done. */
  hold?(client: Endpoint, isHeld: boolean): void
}

/** About how many bytes an unpacked frame holds for each of its requests. */
const unpackedRequestBytes = 512

/** A frame that waits, and since when. */
interface Waiting {
  readonly source: RequestSource
  readonly sinceMs: number
}

/** One request of it. */
interface Arrived {
  readonly request: Request | MalformedRequest
  readonly sinceMs: number
}

/** The arrivals from one client. */
interface Arrivals {
  readonly client: Endpoint
  readonly line: Line
  readonly frames: Waiting[]
  bytes: number
  isGoingOn: boolean
  isHeld: boolean
}

export class Intake {
  readonly #ports: IntakePorts
  readonly #limits: IntakeLimits
  readonly #arrivals = new Map<Endpoint, Arrivals>()
  #bytes = 0
  #waiting = 0

  constructor(ports: IntakePorts, limits: IntakeLimits = defaultIntakeLimits) {
    this.#ports = ports
    this.#limits = limits
  }

  /** Bytes of frames that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Requests of all clients in these frames. */
  get waiting(): number {
    return this.#waiting
  }

  /** A link is up; its requests go on in `line`. */
  open(client: Endpoint, line: Line): void {
    const own = { frames: [], bytes: 0, isGoingOn: false, isHeld: false }
    this.#arrivals.set(client, { client, line, ...own })
  }

  /** The link is down: its waiting requests are not taken up. */
  close(client: Endpoint): void {
    const arrivals = this.#arrivals.get(client)
    if (arrivals === undefined) return
    this.#arrivals.delete(client)
    for (const { source } of arrivals.frames.splice(0)) this.#waiting -= source.count
    this.#weigh(arrivals, -arrivals.bytes)
  }

  add(client: Endpoint, frame: ClientFrame): void {
    // A node's transport has answers only to send; one that comes in is a confused client's.
    if (frame.kind === 'responses' || frame.kind === 'nodes') return
    const arrivals = this.#arrivals.get(client)
    if (arrivals === undefined) return
    if (frame.kind === 'requests') this.#cancel(client, frame.requests)
    if (!arrivals.isGoingOn && this.#isTaken(arrivals, frame)) return
    const source = frame.kind === 'packed' ? frame.requests : new UnpackedRequests(frame)
    arrivals.frames.push({ source, sinceMs: this.#ports.clock.monotonicMs() })
    this.#waiting += source.count
    this.#weigh(arrivals, source.bytes)
    if (!arrivals.isGoingOn) this.#goOn(arrivals)
  }

  #cancel(client: Endpoint, requests: readonly Request[]): void {
    for (const { operation } of requests) {
      if (operation.kind === 'cancel') this.#ports.cancel(client, operation)
    }
  }

  /** Most frames hold one request, and come while nothing waits. */
  #isTaken(arrivals: Arrivals, frame: ClientFrame): boolean {
    if (frame.kind !== 'requests' || frame.requests.length !== 1) return false
    const [request] = frame.requests
    if (request === undefined || frame.malformed !== undefined) return false
    if (!arrivals.line.mayBegin) return false
    const begun = arrivals.line.begin(computeIntakeWork(request.operation))
    const arrived = { request, sinceMs: this.#ports.clock.monotonicMs() }
    if (begun === true) {
      this.#take(arrivals, arrived)
    } else {
      // The turn's time ran out since the look above.
      arrivals.isGoingOn = true
      void this.#takeLater(arrivals, arrived, begun)
    }
    return true
  }

  /** Takes up what there is, as far as this turn has room for it, and the rest in later ones. */
  #goOn(arrivals: Arrivals): void {
    arrivals.isGoingOn = true
    for (;;) {
      const arrived = this.#next(arrivals)
      if (arrived === undefined) break
      const begun = arrivals.line.begin(computeWork(arrived))
      if (begun === true) this.#take(arrivals, arrived)
      else return void this.#takeLater(arrivals, arrived, begun)
    }
    arrivals.isGoingOn = false
  }

  #next(arrivals: Arrivals): Arrived | undefined {
    const { frames } = arrivals
    for (let [frame] = frames; frame !== undefined; [frame] = frames) {
      const { source, sinceMs } = frame
      this.#waiting -= source.count
      const request = source.next()
      this.#waiting += source.count
      if (request !== undefined) return { request, sinceMs }
      frames.shift()
      this.#weigh(arrivals, -source.bytes)
    }
    return undefined
  }

  async #takeLater(arrivals: Arrivals, arrived: Arrived, begun: Promise<void>): Promise<void> {
    try {
      await begun
    } catch {
      // The client is gone.
      return
    }
    this.#take(arrivals, arrived)
    this.#goOn(arrivals)
  }

  #take({ client, line }: Arrivals, { request, sinceMs }: Arrived): void {
    assert(!line.isClosed, 'COST-4: a request is taken up of a client that is gone')
    if ('reason' in request) return this.#ports.refuse(client, request)
    try {
      this.#ports.take(client, request, sinceMs)
    } catch (error) {
      this.#ports.onBug(client, request, error)
    }
  }

  #weigh(arrivals: Arrivals, bytes: number): void {
    arrivals.bytes += bytes
    this.#bytes += bytes
    assert(arrivals.bytes >= 0 && this.#bytes >= 0, 'COST-2: more was taken up than has come')
    assert(this.#waiting >= 0, 'COST-2: more requests were taken up than have come')
    this.#watch(arrivals)
  }

  #watch(arrivals: Arrivals): void {
    const { clientBytesMax, bytesMax } = this.#limits
    const isMuch = this.#bytes > bytesMax && arrivals.bytes > 0
    const isHeld = arrivals.bytes > clientBytesMax || isMuch
    if (isHeld === arrivals.isHeld) return
    arrivals.isHeld = isHeld
    this.#ports.hold?.(arrivals.client, isHeld)
  }
}

function computeWork({ request }: Arrived): number {
  return 'reason' in request ? 1 : computeIntakeWork(request.operation)
}

class UnpackedRequests implements RequestSource {
  readonly bytes: number
  readonly #requests: readonly (Request | MalformedRequest)[]
  #taken = 0

  constructor({ requests, malformed }: ClientFrame & { readonly kind: 'requests' }) {
    this.#requests = malformed === undefined ? requests : [...malformed, ...requests]
    this.bytes = this.#requests.length * unpackedRequestBytes
  }

  get count(): number {
    return this.#requests.length - this.#taken
  }

  next(): Request | MalformedRequest | undefined {
    const next = this.#requests[this.#taken]
    if (next !== undefined) this.#taken += 1
    return next
  }
}
