/**
 * Decides which requests leave HTTP. Node.js hands every request with an `Upgrade` header to the listener for
 * upgrades, and passes over its body; yet the header is an offer that a server may decline (RFC 9110 7.8),
 * and some clients make it with every request: Java's offers `h2c`. Only WebSockets are taken here; all
 * others are requests like any other.
 *
 * Node.js decides by the member `upgrade` of the request, which this class answers. (The option `shouldUpgradeCallback`
 * came with version 24.) The parser of Node.js drops what a client sends behind such a request before it has the answer.
 */
import { IncomingMessage } from 'node:http'

/** Not a private field: the constructor above this one sets `upgrade`, when there would be none yet. */
const offered = new WeakSet<IncomingMessage>()

export class PlainRequest extends IncomingMessage {
  /** Whether the connection is to leave HTTP with this request. */
  get upgrade(): boolean {
    if (!offered.has(this)) return false
    return this.method === 'CONNECT' || this.headers.upgrade?.trim().toLowerCase() === 'websocket'
  }

  set upgrade(isOffered: boolean | null) {
    if (isOffered === true) offered.add(this)
    else offered.delete(this)
  }
}
