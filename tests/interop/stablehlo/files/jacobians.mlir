module @jit_jacobians attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x8xf64>, %arg1: tensor<8xf64>, %arg2: tensor<8x3xf64>, %arg3: tensor<6xf64>) -> (tensor<3x6xf64> {jax.result_info = "result[0]"}, tensor<3x6xf64> {jax.result_info = "result[1]"}, tensor<6x6xf64> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.iota dim = 0 : tensor<6x6xi64>
    %1 = stablehlo.iota dim = 1 : tensor<6x6xi64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<6x6xi64>
    %3 = stablehlo.add %0, %2 : tensor<6x6xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
    %5 = stablehlo.convert %4 : (tensor<6x6xi1>) -> tensor<6x6xf64>
    %6 = stablehlo.slice %5 [0:6, 0:6] : (tensor<6x6xf64>) -> tensor<6x6xf64>
    %7 = stablehlo.convert %6 : tensor<6x6xf64>
    %8 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [0] x [0] : (tensor<6xf64>, tensor<6x8xf64>) -> tensor<8xf64>
    %9 = stablehlo.dot_general %7, %arg0, contracting_dims = [1] x [0] : (tensor<6x6xf64>, tensor<6x8xf64>) -> tensor<6x8xf64>
    %10 = stablehlo.add %8, %arg1 : tensor<8xf64>
    %11 = stablehlo.tanh %10 : tensor<8xf64>
    %12 = stablehlo.broadcast_in_dim %11, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<6x8xf64>
    %14 = stablehlo.multiply %9, %13 : tensor<6x8xf64>
    %15 = stablehlo.add %9, %14 : tensor<6x8xf64>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8xf64>
    %17 = stablehlo.subtract %16, %11 : tensor<8xf64>
    %18 = stablehlo.broadcast_in_dim %17, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<6x8xf64>
    %20 = stablehlo.multiply %15, %19 : tensor<6x8xf64>
    %21 = stablehlo.dot_general %20, %arg2, contracting_dims = [1] x [0] : (tensor<6x8xf64>, tensor<8x3xf64>) -> tensor<6x3xf64>
    %22 = stablehlo.transpose %21, dims = [1, 0] : (tensor<6x3xf64>) -> tensor<3x6xf64>
    %23 = stablehlo.slice %22 [0:3, 0:6] : (tensor<3x6xf64>) -> tensor<3x6xf64>
    %24 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [0] x [0] : (tensor<6xf64>, tensor<6x8xf64>) -> tensor<8xf64>
    %25 = stablehlo.add %24, %arg1 : tensor<8xf64>
    %26 = stablehlo.tanh %25 : tensor<8xf64>
    %27 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8xf64>
    %28 = stablehlo.subtract %27, %26 : tensor<8xf64>
    %29 = stablehlo.iota dim = 0 : tensor<3x3xi64>
    %30 = stablehlo.iota dim = 1 : tensor<3x3xi64>
    %31 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<3x3xi64>
    %32 = stablehlo.add %29, %31 : tensor<3x3xi64>
    %33 = stablehlo.compare EQ, %32, %30, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %34 = stablehlo.convert %33 : (tensor<3x3xi1>) -> tensor<3x3xf64>
    %35 = stablehlo.slice %34 [0:3, 0:3] : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %36 = stablehlo.convert %35 : tensor<3x3xf64>
    %37 = stablehlo.dot_general %36, %arg2, contracting_dims = [1] x [1] : (tensor<3x3xf64>, tensor<8x3xf64>) -> tensor<3x8xf64>
    %38 = stablehlo.broadcast_in_dim %28, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<3x8xf64>
    %40 = stablehlo.multiply %37, %39 : tensor<3x8xf64>
    %41 = stablehlo.broadcast_in_dim %26, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<3x8xf64>
    %43 = stablehlo.multiply %40, %42 : tensor<3x8xf64>
    %44 = stablehlo.add %40, %43 : tensor<3x8xf64>
    %45 = stablehlo.dot_general %44, %arg0, contracting_dims = [1] x [1] : (tensor<3x8xf64>, tensor<6x8xf64>) -> tensor<3x6xf64>
    %46 = stablehlo.slice %45 [0:3, 0:6] : (tensor<3x6xf64>) -> tensor<3x6xf64>
    %47 = stablehlo.iota dim = 0 : tensor<6x6xi64>
    %48 = stablehlo.iota dim = 1 : tensor<6x6xi64>
    %49 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<6x6xi64>
    %50 = stablehlo.add %47, %49 : tensor<6x6xi64>
    %51 = stablehlo.compare EQ, %50, %48, SIGNED : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
    %52 = stablehlo.convert %51 : (tensor<6x6xi1>) -> tensor<6x6xf64>
    %53 = stablehlo.slice %52 [0:6, 0:6] : (tensor<6x6xf64>) -> tensor<6x6xf64>
    %54 = stablehlo.convert %53 : tensor<6x6xf64>
    %55 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [0] x [0] : (tensor<6xf64>, tensor<6x8xf64>) -> tensor<8xf64>
    %56 = stablehlo.dot_general %54, %arg0, contracting_dims = [1] x [0] : (tensor<6x6xf64>, tensor<6x8xf64>) -> tensor<6x8xf64>
    %57 = stablehlo.add %55, %arg1 : tensor<8xf64>
    %58 = stablehlo.tanh %57 : tensor<8xf64>
    %59 = stablehlo.broadcast_in_dim %58, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %60 = stablehlo.broadcast_in_dim %59, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<6x8xf64>
    %61 = stablehlo.multiply %56, %60 : tensor<6x8xf64>
    %62 = stablehlo.add %56, %61 : tensor<6x8xf64>
    %63 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8xf64>
    %64 = stablehlo.subtract %63, %58 : tensor<8xf64>
    %65 = stablehlo.broadcast_in_dim %64, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<6x8xf64>
    %67 = stablehlo.multiply %62, %66 : tensor<6x8xf64>
    %68 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8xf64>
    %69 = stablehlo.subtract %68, %58 : tensor<8xf64>
    %70 = stablehlo.negate %67 : tensor<6x8xf64>
    %71 = stablehlo.iota dim = 0 : tensor<1x1xi64>
    %72 = stablehlo.iota dim = 1 : tensor<1x1xi64>
    %73 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<1x1xi64>
    %74 = stablehlo.add %71, %73 : tensor<1x1xi64>
    %75 = stablehlo.compare EQ, %74, %72, SIGNED : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi1>
    %76 = stablehlo.convert %75 : (tensor<1x1xi1>) -> tensor<1x1xf64>
    %77 = stablehlo.slice %76 [0:1, 0:1] : (tensor<1x1xf64>) -> tensor<1x1xf64>
    %78 = stablehlo.reshape %77 : (tensor<1x1xf64>) -> tensor<1xf64>
    %79 = stablehlo.convert %78 : tensor<1xf64>
    %80 = stablehlo.broadcast_in_dim %79, dims = [0] : (tensor<1xf64>) -> tensor<1x3xf64>
    %81 = stablehlo.dot_general %80, %arg2, contracting_dims = [1] x [1] : (tensor<1x3xf64>, tensor<8x3xf64>) -> tensor<1x8xf64>
    %82 = stablehlo.broadcast_in_dim %69, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %83 = stablehlo.broadcast_in_dim %70, dims = [0, 2] : (tensor<6x8xf64>) -> tensor<6x1x8xf64>
    %84 = stablehlo.multiply %81, %82 : tensor<1x8xf64>
    %85 = stablehlo.broadcast_in_dim %81, dims = [1, 2] : (tensor<1x8xf64>) -> tensor<1x1x8xf64>
    %86 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2] : (tensor<1x1x8xf64>) -> tensor<6x1x8xf64>
    %87 = stablehlo.multiply %86, %83 : tensor<6x1x8xf64>
    %88 = stablehlo.broadcast_in_dim %58, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %89 = stablehlo.broadcast_in_dim %67, dims = [0, 2] : (tensor<6x8xf64>) -> tensor<6x1x8xf64>
    %90 = stablehlo.broadcast_in_dim %88, dims = [1, 2] : (tensor<1x8xf64>) -> tensor<1x1x8xf64>
    %91 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2] : (tensor<1x1x8xf64>) -> tensor<6x1x8xf64>
    %92 = stablehlo.multiply %87, %91 : tensor<6x1x8xf64>
    %93 = stablehlo.broadcast_in_dim %84, dims = [1, 2] : (tensor<1x8xf64>) -> tensor<1x1x8xf64>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2] : (tensor<1x1x8xf64>) -> tensor<6x1x8xf64>
    %95 = stablehlo.multiply %94, %89 : tensor<6x1x8xf64>
    %96 = stablehlo.add %92, %95 : tensor<6x1x8xf64>
    %97 = stablehlo.add %87, %96 : tensor<6x1x8xf64>
    %98 = stablehlo.dot_general %97, %arg0, contracting_dims = [2] x [1] : (tensor<6x1x8xf64>, tensor<6x8xf64>) -> tensor<6x1x6xf64>
    %99 = stablehlo.slice %98 [0:6, 0:1, 0:6] : (tensor<6x1x6xf64>) -> tensor<6x1x6xf64>
    %100 = stablehlo.reshape %99 : (tensor<6x1x6xf64>) -> tensor<6x6xf64>
    %101 = stablehlo.transpose %100, dims = [1, 0] : (tensor<6x6xf64>) -> tensor<6x6xf64>
    %102 = stablehlo.slice %101 [0:6, 0:6] : (tensor<6x6xf64>) -> tensor<6x6xf64>
    return %23, %46, %102 : tensor<3x6xf64>, tensor<3x6xf64>, tensor<6x6xf64>
  }
}
