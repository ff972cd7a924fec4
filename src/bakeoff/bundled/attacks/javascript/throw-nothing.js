onCall = () => { throw undefined }
