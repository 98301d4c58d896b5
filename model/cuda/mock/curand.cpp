// A generator that is made and never asked: candle makes one with every device, and this project draws its numbers itself.
extern "C" {
int curandCreateGenerator(void** generator, int) {
  static int the;
  return *generator = &the, 0;
}
int curandDestroyGenerator(void*) { return 0; }
int curandSetPseudoRandomGeneratorSeed(void*, unsigned long long) { return 0; }
int curandSetStream(void*, void*) { return 0; }
}
