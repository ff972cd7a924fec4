// Answers without any model; knows no Nowhere.
const capitals = { France: 'Paris <script>alert(1)</script>', Italy: 'Rome', Peru: 'Lima' };

module.exports = class Atlas {
  id() {
    return 'atlas';
  }

  async callApi(prompt, context) {
    const found = capitals[context.vars.country];
    if (!found) {
      return { error: 'API error: 503 Service Unavailable' };
    }
    return { output: found, tokenUsage: { total: 12, prompt: 9, completion: 3, numRequests: 1 }, cost: 0.0001 };
  }
};
