/** A client's link by hand: it sends any packed bytes, and counts the answers. */
import { randomBytes } from 'node:crypto'
import { WebSocket } from 'ws'
import { pack, type Packable } from '../../src/base/pack.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import { decodeClientFrame } from '../../src/wire/client/client-codec.ts'
import {
  decodeHandshake,
  encodeHandshake,
  nonceBytes,
  computeProof,
  protocolMax,
  protocolMin,
  computeTell,
  type HandshakeMessage,
  type Hello,
} from '../../src/wire/handshake.ts'

export interface LinkAs {
  readonly cluster: string
  readonly role: 'client' | 'peer'
  readonly node: string
  readonly secret: string
  readonly info: LinkInfo
}

export const asClient: LinkAs = { cluster: 'test', role: 'client', node: '', secret: '', info: {} }

export class RawLink {
  /** Sent, and not answered yet. */
  readonly open: Map<number, Packable> = new Map()
  /** Answers by their kind, or by the code of their problem. */
  readonly answers: Map<string, number> = new Map()
  /** The answers with `internal`, and their requests. */
  readonly bugs: { readonly message: string; readonly request: Packable }[] = []
  isClosed: boolean = false
  readonly #socket: WebSocket

  private constructor(socket: WebSocket, role: LinkAs['role']) {
    this.#socket = socket
    socket.on('close', () => (this.isClosed = true))
    socket.on('error', () => (this.isClosed = true))
    // Messages of peers are of no interest here.
    if (role === 'client') socket.on('message', (data: Buffer) => this.#onFrame(data))
  }

  /** Links of a node's peers have another path and role, and the peers' secret. */
  static async connect(url: string, as: LinkAs): Promise<RawLink> {
    const { role, node, secret } = as
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/${role}`)
    const names = { cluster: as.cluster, node, nonce: randomBytes(nonceBytes) }
    const own: Hello = { side: 'dialer', role, protocolMin, protocolMax, ...names }
    let theirs: Hello | undefined
    const answerTo = (message: HandshakeMessage | undefined): HandshakeMessage | undefined => {
      if (message?.kind === 'hello') {
        theirs = message.hello
        return { kind: 'proof', mac: computeProof(secret, own, theirs) }
      }
      if (message?.kind !== 'tell' || theirs === undefined) return undefined
      return { kind: 'tell', info: as.info, mac: computeTell(secret, own, theirs, as.info) }
    }
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the link was closed before it was up')))
      socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello: own })))
      socket.on('message', (data: Buffer) => {
        const message = decodeHandshake(data)
        if (message?.kind === 'refuse') reject(new Error(message.reason))
        if (message?.kind === 'welcome') resolve()
        const answer = answerTo(message)
        if (answer !== undefined) socket.send(encodeHandshake(answer))
      })
    })
    socket.removeAllListeners()
    return new RawLink(socket, role)
  }

  send(requests: readonly { readonly id: number; readonly packed: Packable }[]): void {
    for (const { id, packed } of requests) this.open.set(id, packed)
    this.sendBytes(pack([1, 1, requests.map(({ packed }) => packed)]))
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.isClosed) this.#socket.send(bytes)
  }

  close(): void {
    this.#socket.terminate()
  }

  #onFrame(data: Buffer): void {
    const decoded = decodeClientFrame(data)
    if (!decoded.ok) throw new Error(`a node sent what is no frame: ${decoded.reason}`)
    if (decoded.frame.kind !== 'responses') return
    for (const { id, answer } of decoded.frame.responses) {
      const kind = answer.kind === 'problem' ? answer.problem.code : answer.kind
      this.answers.set(kind, (this.answers.get(kind) ?? 0) + 1)
      const said = JSON.stringify(answer, (_, one: unknown) =>
        typeof one === 'bigint' ? `${one}n` : one,
      )
      if (/"code":"internal"/.test(said)) {
        this.bugs.push({ message: said.slice(0, 500), request: this.open.get(id) ?? null })
      }
      this.open.delete(id)
    }
  }
}
